"""Which addresses of the network may be connected to: those of the public Internet, and what the user allows."""

import ipaddress
from collections.abc import Iterable

from denizen.errors import ToolRefused

_Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_PUBLIC_V6 = ipaddress.IPv6Network("2000::/3")
_TRANSLATED = ipaddress.IPv6Network("64:ff9b::/96")
_RESERVED: tuple[_Network, ...] = (
    ipaddress.IPv4Network("192.0.0.0/24"),  # IETF protocol assignments, among them a cloud's metadata
    ipaddress.IPv4Network("192.88.99.0/24"),  # relays to 6to4
    ipaddress.IPv4Network("168.63.129.16/32"),  # a cloud's host, in public clothes
    ipaddress.IPv6Network("2001::/23"),  # tunnels
)


class AddressGuard:
    """Refuses private addresses, in whatever form, but those of the names and networks that the user allows."""

    def __init__(self, allowed: Iterable[str]) -> None:
        self._networks: list[_Network] = []
        self._names: set[str] = set()
        for entry in allowed:
            try:
                self._networks.append(ipaddress.ip_network(entry, strict=False))
            except ValueError:
                self._names.add(_plain(entry))

    def check(self, host: str, address: str) -> None:
        """Raises ToolRefused when `address`, which the name `host` has, must not be connected to."""
        place = ipaddress.ip_address(address.partition("%")[0])
        leads_to = place
        if isinstance(place, ipaddress.IPv6Address):
            # to an IPv4 one, where it is mapped, compatible, translated (NAT64) or tunnelled (6to4)
            leads_to = place.ipv4_mapped or place.sixtofour or place
            if place in _TRANSLATED or int(place) >> 32 == 0:
                leads_to = ipaddress.IPv4Address(int(place) & 0xFFFFFFFF)
        reserved = not leads_to.is_global or leads_to.is_multicast or any(leads_to in each for each in _RESERVED)
        is_public = not reserved and (isinstance(leads_to, ipaddress.IPv4Address) or leads_to in _PUBLIC_V6)
        is_allowed = any(form in each for form in (place, leads_to) for each in self._networks)
        if not (is_public or is_allowed or _plain(host) in self._names):
            raise ToolRefused(
                f"{host} is at {address}, which is not a public address; "
                f'the user can allow it: web.allow_private = ["{host}"] in denizen.toml'
            )

    def check_literal(self, host: str) -> None:
        """Raises ToolRefused when `host` is an address, and one oddly written or that must not be connected to.

        So it does for `localhost` and names below it, which are this machine's wherever they are looked up.
        """
        if _plain(host) == "localhost" or _plain(host).endswith(".localhost"):
            self.check(host, "127.0.0.1")
        if ":" in host or host.replace(".", "").isdigit():
            try:
                ipaddress.ip_address(host.partition("%")[0])
            except ValueError:
                raise ToolRefused(f"{host} isn't a standard way to write an IP address") from None
            self.check(host, host)


def _plain(name: str) -> str:
    return name.rstrip(".").casefold()
