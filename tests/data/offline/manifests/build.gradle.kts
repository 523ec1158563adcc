dependencies {
    implementation("io.ktor:ktor-server:3.2.0")
    testImplementation("junit:junit:4")
}
