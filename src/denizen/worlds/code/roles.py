"""What the agent is there for: roles (seed 001)."""

from dataclasses import dataclass

from denizen.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Role:
    """A way of working: its `instructions` go with the task; `reads_only`: it changes nothing; `validates`: its
    changes must pass the project's validators.
    """

    name: str
    instructions: str
    reads_only: bool = False
    validates: bool = False


INVESTIGATOR = Role(
    "investigator",
    "You investigate; you change nothing. Find the answer in the code and name the places that prove it as path:line. "
    "Say what you are sure of, what you infer, and what you could not find.",
    reads_only=True,
)
AUDITOR = Role(
    "auditor",
    "You audit; you change nothing. Look for what is wrong, not for what is a matter of taste, and check each finding "
    "in the code before you report it. Answer with one finding per line, the worst first, each exactly\n"
    "SEVERITY path:line what is wrong, and what follows from it\n"
    "with SEVERITY one of CRITICAL, HIGH, MEDIUM, LOW, INFO. Write nothing else; if nothing is wrong, write: "
    "No findings.",
    reads_only=True,
)
REFACTORER = Role(
    "refactorer",
    "You refactor: the behaviour stays, the code gets better. Work in small steps, keep what others call as it is "
    "unless the task says otherwise, and look at the callers of what you change. The project's checks run when you "
    "are done, and you get what fails.",
    validates=True,
)

ROLES = {role.name: role for role in (INVESTIGATOR, AUDITOR, REFACTORER)}


def find_role(name: str) -> Role:
    """The role of that name. Raises ConfigError naming those there are."""
    if name not in ROLES:
        raise ConfigError(f"There is no role {name!r}; there is: {', '.join(ROLES)}.")
    return ROLES[name]
