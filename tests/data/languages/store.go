// Package store keeps parts.
package store

import (
	"bufio"
	"fmt"
	"os"
)

// Limit is how many parts fit.
const Limit = 100

const (
	Empty State = iota
	Full
)

var opened, closed int

// State says how full a store is.
type State int

type Name = string

// Source is where parts come from.
type Source interface {
	// Read reads one.
	Read(name Name) (*Part, error)
	fmt.Stringer
}

// Part is one part on a shelf.
type Part struct {
	Name  Name
	Count int `json:"count"`
}

type Store[T any] struct {
	parts map[Name]*Part
}

// Add puts a part on the shelf.
func (s *Store[T]) Add(part *Part) error {
	if len(s.parts) >= Limit {
		return fmt.Errorf("full: %s", part.Name)
	}
	s.parts[part.Name] = part
	return nil
}

func (p Part) String() string { return p.Name }

// Load reads a file.
func Load(path string) (*Store[int], error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	store := New()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		_ = store.Add(&Part{Name: lines.Text()})
	}
	return store, nil
}

func New() *Store[int] {
	opened++
	return &Store[int]{parts: map[Name]*Part{}}
}
