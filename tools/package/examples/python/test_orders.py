from datetime import datetime, timedelta
from decimal import Decimal
from uuid import uuid4

import pytest
from cassandra import InvalidRequest

from orders import Order, Orders

START = datetime(2026, 1, 1)


@pytest.fixture
def orders(session):
    return Orders(session, "shop")


@pytest.fixture
def customer():
    """Each test has a customer of its own, so the tests can share the tables."""
    return str(uuid4())


def placed(orders, customer, days):
    made = [Order(customer, START + timedelta(days=day), uuid4(), Decimal("19.90")) for day in days]
    for order in made:
        orders.place(order)
    return made


def test_orders_are_found_by_customer_and_time(orders, customer):
    first, second, _ = placed(orders, customer, [0, 1, 31])
    placed(orders, "another " + customer, [0])
    assert orders.between(customer, START, START + timedelta(days=31)) == [first, second]


def test_an_order_is_paid_once(orders, customer):
    (order,) = placed(orders, customer, [0])
    assert orders.pay(order, "card 1")
    assert not orders.pay(order, "card 2")


def test_tally_refuses_what_amazon_keyspaces_refuses(session):
    with pytest.raises(InvalidRequest):
        session.execute("SELECT count(*) FROM shop.orders")
