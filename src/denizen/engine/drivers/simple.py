"""The `simple` driver: ask the model until it answers."""

from denizen.ports import Action, Iteration, Proceed, View


class Simple:
    """The model decides by itself."""

    def decide(self, view: View) -> Action:
        """Ask it."""
        return Proceed()

    def observe(self, iteration: Iteration) -> None:
        """Nothing is needed."""
