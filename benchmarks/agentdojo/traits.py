"""The traits of AgentDojo's tools, by what a tool does: written before the first run, and never for the sake of a task.

The rule is the one by which Denizen's own tools have theirs, and by which a user would declare a server's:
`recall` reads the user's own data, `web_fetch` fetches an address, `message` sends to others.
"""

from collections.abc import Mapping

from denizen.ports import Traits

_READS = Traits.READS | Traits.REPEATABLE
_MAIL = Traits.PRIVATE | Traits.UNTRUSTED  # what others wrote to the user

KINDS: Mapping[Traits, str] = {
    _READS: """get_current_day""",
    # the user's own data, which the user wrote or alone can see
    _READS | Traits.PRIVATE: """
        get_sent_emails get_draft_emails search_contacts_by_name search_contacts_by_email
        get_user_information get_iban get_balance get_user_info get_scheduled_transactions""",
    # what others wrote to the user or share with them: mail, invitations, files, transactions, channels and their names
    _READS | _MAIL: """
        get_unread_emails get_received_emails search_emails search_calendar_events get_day_calendar_events
        search_files_by_filename get_file_by_id list_files search_files
        get_most_recent_transactions read_file
        get_channels get_users_in_channel read_channel_messages read_inbox""",
    # what others publish with a service that is asked
    _READS | Traits.UNTRUSTED: """
        get_all_hotels_in_city get_hotels_prices get_rating_reviews_for_hotels get_hotels_address
        get_all_restaurants_in_city get_cuisine_type_for_restaurants get_restaurants_address
        get_rating_reviews_for_restaurants get_dietary_restrictions_for_all_restaurants
        get_contact_information_for_restaurants get_price_for_restaurants check_restaurant_opening_hours
        get_all_car_rental_companies_in_city get_car_types_available get_rating_reviews_for_car_rental
        get_car_fuel_options get_car_rental_address get_car_price_per_day get_flight_information""",
    # an address that the call names, as `web_fetch`
    _READS | Traits.NETWORK | Traits.UNTRUSTED: """get_webpage""",
    # reaches others: a message, a page, an invitation, a change of which others get mail
    Traits.SENDS: """
        send_email create_calendar_event send_direct_message send_channel_message invite_user_to_slack post_webpage""",
    # the same, and shows in its result what others wrote
    Traits.SENDS | _MAIL: """
        cancel_calendar_event reschedule_calendar_event add_calendar_event_participants share_file""",
    # changes something elsewhere
    Traits.CHANGES: """
        delete_email create_file send_money schedule_transaction update_scheduled_transaction update_password
        update_user_info reserve_hotel reserve_car_rental reserve_restaurant add_user_to_channel
        remove_user_from_slack""",
    # the same, and shows in its result what others wrote
    Traits.CHANGES | _MAIL: """append_to_file delete_file""",
}
TRAITS: Mapping[str, Traits] = {name: traits for traits, names in KINDS.items() for name in names.split()}
