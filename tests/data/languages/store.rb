require 'json'
require_relative 'shelf'

LIMIT = 100

# Things with a name.
module Named
  def label
    name.to_s
  end
end

module Parts
  # Keeps parts by name.
  class Store < Shelf
    include Named

    SIZES = %w[small large].freeze
    attr_reader :parts

    class Full < StandardError; end

    def initialize(source)
      @parts = {}
      @source = source
    end

    # Adds one part.
    def add(part)
      raise Full, part.label if @parts.size >= LIMIT

      @parts[part.name] = part
    end

    def self.load(path)
      store = new(path)
      File.foreach(path) { |line| store.add(parse(line)) }
      store
    end

    class << self
      def parse(line)
        JSON.parse(line)
      end
    end

    def empty? = @parts.empty?
  end
end

def missing(store)
  store.parts.values.select(&:missing)
end
