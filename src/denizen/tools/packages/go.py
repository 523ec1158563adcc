"""go.mod as the lock file that it is: since Go 1.17 it names all modules of the build, with their versions."""

from denizen.tools.packages.graph import Lock, Manifest, Package


def locked_by_go_mod(manifest: Manifest) -> Lock:
    """The modules that go.mod names; it doesn't say who brings what."""
    public = [each for each in manifest.wanted if not each.spec.startswith("path ")]
    return Lock({each.name: Package(each.name, each.spec) for each in public}, graph=False)
