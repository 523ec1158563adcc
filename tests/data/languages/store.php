<?php

namespace Parts;

use Parts\Shelf\Base;

const LIMIT = 100;
define('VERSION', 2);

/** Where parts come from. */
interface Source
{
    public function read(string $name): ?Part;
}

trait Named
{
    protected string $name = '';

    public function label(): string
    {
        return $this->name;
    }
}

enum State: string
{
    case Full = 'full';
    case Empty = 'empty';
}

/**
 * Keeps parts by name.
 */
#[Entity]
final class Store extends Base implements Source
{
    use Named;

    public const WIDTH = 3;
    private array $parts = [];

    public function __construct(private Source $source)
    {
        parent::__construct();
    }

    // Adds one part.
    #[Logged]
    public function add(Part $part): void
    {
        if (count($this->parts) >= LIMIT) {
            throw new FullException($part->label());
        }
        $this->parts[$part->label()] = $part;
        static::changed($part);
    }

    public function read(string $name): ?Part
    {
        return $this->parts[$name] ?? $this->source->read($name);
    }
}

function missing(Store $store): array
{
    return array_filter($store->all(), fn ($part) => $part->missing());
}
