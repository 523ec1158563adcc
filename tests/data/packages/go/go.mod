module example.org/lamp

go 1.22

require (
	github.com/BurntSushi/toml v1.3.2
	golang.org/x/text v0.14.0 // indirect
)

require github.com/spf13/cobra v1.8.0

replace example.org/wires => ../wires
