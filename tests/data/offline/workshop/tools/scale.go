package main

import "fmt"

type Scale struct{ grams int }

func (s *Scale) Weigh() int { return s.grams }

func main() { fmt.Println((&Scale{7}).Weigh()) }
