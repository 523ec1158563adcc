module example.org/scale

go 1.26

require (
	github.com/spf13/cobra v1.9.1
	golang.org/x/text v0.30.0 // indirect
)
