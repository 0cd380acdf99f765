"""The tests of this folder that are not run with --store rados, with the reason of each. A name without :: is a whole file."""
EXCEPTIONS = {
    "point-in-time recovery, saved states and backups are not offered on a cluster": [
        "test_backup.py",
        "test_clock.py::test_recovery_windows_move_with_the_clock",
        "test_custom_properties.py::test_recovery_that_is_switched_off_forgets_its_history",
        "test_pages.py::test_the_statements_of_a_page_run[docs/restore.md]",
        "test_refusals.py::test_four_restores_at_once",
        "test_restore.py",
        "test_sdks.py::test_aws_sdk",
        "test_snapshots.py",
        "test_supported.py::test_passes[restore-table]",
    ],
    "about files of RocksDB in the data folder, or what fails on its disk": [
        "test_control_plane.py::test_a_disk_that_fails_is_an_error_of_the_server",
        "test_damaged_store.py",
        "test_disk_full.py",
        "test_file_faults.py",
        "test_kill9.py::test_a_server_at_rest_leaves_little_to_read_again",
        "test_kill9.py::test_rows_of_a_long_log_are_there_after_kill9",
        "test_space.py::test_rows_that_are_written_again_and_again_take_little_more_than_once_their_space",
        "test_space.py::test_the_space_of_a_large_table_comes_back",
        "test_space.py::test_what_is_not_written_yet_takes_no_space",
        "test_operation.py::test_metrics_name_the_program_and_what_it_uses",
        "test_upgrade.py",
        "test_verify.py",
    ],
    "has bounds of memory that leave no room for what librados holds for 64 workers": [
        "test_hostile.py::test_results_of_one_connection_are_made_as_it_reads_them",
        "test_hostile.py::test_results_that_nobody_reads_cost_those_who_do_not_read_them",
    ],
    "about statements that an event loop answers from memory: on a cluster workers answer all of them, several of a connection at once": [
        "test_row_cache.py::test_the_same_with_it_and_without_it",
        "test_together.py::test_faults_hit_whom_they_are_to_hit",
        "test_together.py::test_limits_refuse_whoever_comes_when_they_are_reached",
        "test_together.py::test_the_ledger_among_reads_has_those_in_front_of_it",
        "test_together.py::test_they_are_answered_in_the_order_in_which_they_came",
        "test_together.py::test_a_write_among_reads_is_not_seen_before_it",
        "test_tracing.py::test_condition_on_a_row_in_memory_is_decided_where_it_came",
        "test_write_size.py::test_an_update_of_a_row_in_memory_leaves_no_loop",
    ],
    "asks one partition for more requests a second than a cluster of one OSD answers beside other programs": [
        "test_stress.py::test_one_partition_is_compared_with_what_it_may_have",
    ],
    "starts no server of its own, or has a program start it": [
        "test_demo.py",
        "test_image.py",
        "test_tally_usage.py",
    ],
    "starts clusters, and servers on them, itself: it is the same test with and without --store rados": [
        "test_move.py",
        "test_rados.py",
        "test_rados_faults.py",
        "test_rados_servers.py",
    ],
}


def names_of(file, test):
    """The names by which the list may have a test."""
    return {file, f"{file}::{test}", f"{file}::{test.partition('[')[0]}"}


def reason(file, test):
    """Why this test is not run on a cluster; None: it is."""
    return next((why for why, names in EXCEPTIONS.items() if names_of(file, test) & set(names)), None)


def unused(file, tests):
    """The names of the list in this file that none of its tests has."""
    listed = {name for names in EXCEPTIONS.values() for name in names if name.partition("::")[0] == file}
    return listed - {name for test in tests for name in names_of(file, test)}
