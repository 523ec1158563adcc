import Foundation

let limit = 100
typealias Name = String

/// Where parts come from.
protocol Source {
    var name: Name { get }
    func read(name: Name) throws -> Part?
}

enum State: String {
    case full = "full"
    case empty, broken
    indirect case nested(State)

    var isFull: Bool { self == .full }
}

/// One part on a shelf.
struct Part: Codable {
    let name: Name
    var count: Int = 0
}

/// Keeps parts by name.
@available(iOS 13, *)
public final class Store<T: Source>: Shelf {
    private var parts: [Name: Part] = [:]
    let source: T

    init(source: T) {
        self.source = source
    }

    deinit {
        close()
    }

    // Adds one part.
    @discardableResult
    func add(_ part: Part) throws -> Bool {
        guard parts.count < limit else { throw Full(name: part.name) }
        parts[part.name] = part
        return true
    }

    subscript(name: Name) -> Part? {
        return parts[name]
    }

    struct Full: Error {
        let name: Name
    }
}

extension Store: CustomStringConvertible {
    var description: String { return "store" }

    static func load(path: String) -> Int {
        return parse(path).count
    }
}

actor Counter {
    func bump() {}
}

func parse(_ path: String) -> [Part] {
    return path.split(separator: "\n").map { Part(name: String($0)) }
}
