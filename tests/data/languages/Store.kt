package org.example.parts

import java.io.File
import kotlin.math.max

const val LIMIT = 100

typealias Name = String

/** Where parts come from. */
interface Source {
    val name: Name
    fun read(name: Name): Part?
}

enum class State(val why: String) {
    FULL("full"),
    EMPTY("empty");

    fun isFull() = this == FULL
}

data class Part(val name: Name, var count: Int = 0)

/**
 * Keeps parts by name.
 */
@Deprecated("old")
open class Store<T : Part>(private val source: Source) : Shelf(), Source by source {
    private val parts = mutableMapOf<Name, T>()

    val size: Int
        get() = parts.size

    init {
        println(size)
    }

    // Adds one part.
    @Throws(FullException::class)
    fun add(part: T) {
        if (parts.size >= LIMIT) throw FullException(part.name)
        parts[part.name] = part
    }

    class FullException(name: Name) : Exception(name)

    companion object {
        fun load(path: String): Store<Part> = Store(FileSource(File(path)))
    }
}

object Registry {
    val stores = mutableListOf<Store<Part>>()
}

fun Store<Part>.missing(): List<Part> = parts.values.filter { it.count == 0 }

suspend fun main() {
    Registry.stores.add(Store.load("parts"))
}
