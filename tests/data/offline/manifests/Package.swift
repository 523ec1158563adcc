let package = Package(dependencies: [.package(url: "https://example.org/Lamp.git", from: "1.0.0")])
