"""What a customer wants."""

from shop.prices import LAMP_CENTS, PriceList, total

LIMIT: int = LAMP_CENTS * 100


def too_much(articles: list[str]) -> bool:
    return total(PriceList(), articles) > LIMIT
