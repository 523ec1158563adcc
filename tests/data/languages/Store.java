package org.example.parts;

import java.util.HashMap;
import java.util.Map;

/**
 * Keeps parts by name.
 */
@Deprecated
public class Store<T extends Part> extends Shelf implements Source {
    public static final int LIMIT = 100;
    private final Map<String, T> parts = new HashMap<>();

    public Store() {
        super("store");
    }

    /** Adds one part. */
    @Override
    public void add(T part) throws FullException {
        if (parts.size() >= LIMIT) {
            throw new FullException(part.name());
        }
        parts.put(part.name(), part);
    }

    static class FullException extends Exception {
        FullException(String name) {
            super(name);
        }
    }
}

interface Source {
    void add(Part part);

    default String name() {
        return "source";
    }
}

enum State {
    FULL,
    EMPTY("nothing");

    private String why;

    boolean isFull() {
        return this == FULL;
    }
}

record Part(String name, int count) {
    boolean missing() {
        return count == 0;
    }
}

@interface Checked {
    String value();
}
