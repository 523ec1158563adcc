using System;
using System.Collections.Generic;

namespace Parts
{
    /// <summary>
    /// Keeps parts by name.
    /// </summary>
    [Serializable]
    public class Store<T> : Shelf, ISource where T : Part
    {
        public const int Limit = 100;
        private readonly Dictionary<string, T> parts = new();

        public Store(string name) : base(name) { }

        public int Count => parts.Count;

        public string Name { get; set; } = "store";

        public event EventHandler Changed;

        /// <summary>Adds one part.</summary>
        [Obsolete]
        public void Add(T part)
        {
            if (parts.Count >= Limit)
            {
                throw new FullException(part.Name);
            }
            parts[part.Name] = part;
            Changed?.Invoke(this, EventArgs.Empty);
        }

        private class FullException : Exception
        {
            public FullException(string name) : base(name) { }
        }
    }

    public interface ISource
    {
        string Name { get; }
        void Add(Part part);
    }

    public enum State { Full, Empty = 2 }

    public struct Size
    {
        public int Width;
    }

    public record Part(string Name, int Count);

    public delegate void Handler(Part part);
}
