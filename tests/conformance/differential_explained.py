"""Differences between Tally and Cassandra that are known, each with its reason: what Cassandra does by chance or by a defect of its own, and what Tally
does in another order where both refuse. differential.py counts them apart. A rule is as narrow as its reason: statement, column types and both answers."""
import ast
import re
import uuid

RULES = []


def explains(reason):
    def add(rule):
        RULES.append((reason, rule))
        return rule
    return add


def explanation(table, statement, tally, cassandra):
    """The reason why the two answer differently, or None."""
    return next((reason for reason, rule in RULES if rule(table, statement, tally, cassandra)), None)


def rows(answer):
    return [repr(tuple(row)) for page in answer.pages for row in page]


def answered(tally, cassandra):
    return not tally.error and not cassandra.error


def map_types(type_):
    """The types of keys and values of a map that is not frozen."""
    match = re.fullmatch(r"map<(\w+), (.+)>", type_)
    return match.groups() if match else (None, None)


def shortest(row):
    """With the numbers that blobs are without the bytes that only repeat their sign."""
    blobs = re.sub(r"b'(?:\\x[0-9a-f]{2}|[^'\\]|\\.)*'|b\"[^\"]*\"", lambda m: "0x" + ast.literal_eval(m.group()).hex(), row)
    return re.sub(r"0x(?:(?:00)+(?=[0-7][0-9a-f])|(?:ff)+(?=[89a-f][0-9a-f]))", "0x", blobs)


@explains("Cassandra leaves out a row whose last INSERT had a time to live that has ended, though SELECT * returns it for another column, when the columns that are "
          "asked for are null")
def row_of_unselected_columns(table, statement, tally, cassandra):
    if not table.expired or not answered(tally, cassandra) or statement.startswith("SELECT *"):
        return False
    left, right = rows(tally), rows(cassandra)
    if " LIMIT " in statement:  # other rows take the place of those that are left out
        return len(left) >= len(right) and left != right
    rest = iter(left)
    return len(left) > len(right) and all(row in rest for row in right)


@explains("Cassandra puts on disk what a table holds in memory when it is altered: the key of a row that is written again has the form of what is newer (varintAsBlob(c0) is 0x7f, not 0x007f)")
def form_of_a_key_after_alter(table, statement, tally, cassandra):
    inexact = any(type_ == "varint" for _, type_ in table.ck) and "asblob(" in statement.partition(" FROM ")[0].lower()
    return table.altered and inexact and answered(tally, cassandra) and list(map(shortest, rows(tally))) == list(map(shortest, rows(cassandra)))


@explains("Cassandra compares an element of a map in a condition in the order of the map's keys (LWT on map<text, int>: 5 > -1 is false)")
def element_in_the_order_of_keys(table, statement, tally, cassandra):
    conditions = statement.partition(" IF ")[2]
    named = re.findall(r"\b(\w+)\[[^]]*\] (<|>|<=|>=|=|!=|IN) ", conditions)
    types = [(sign, *map_types(dict(table.columns)[name])) for name, sign in named if name in dict(table.columns)]
    many_forms = re.compile(r"decimal|varint|frozen<|tuple<")  # equal values may differ in their bytes: 1.0 and 1.00, a user type that has grown
    return answered(tally, cassandra) and any(key != value and key and (sign in "<=>=" and sign != "=" or many_forms.search(value)) for sign, key, value in types)


@explains("Cassandra finds elements of a static set or keys of a static map that were deleted (their tombstones are there until they are purged)")
def deleted_element_of_a_static(table, statement, tally, cassandra):
    found = [name for name, type_ in table.static
             if re.search(rf"\b{name} CONTAINS KEY ", statement) and type_.startswith("map<") or re.search(rf"\b{name} CONTAINS (?!KEY)", statement) and type_.startswith("set<")]
    if not found or not answered(tally, cassandra) or tally.columns != cassandra.columns:
        return False
    few, many = rows(tally), iter(rows(cassandra))
    return "(" in statement.partition(" FROM ")[0] or all(row in many for row in few)  # an aggregate counts them; else Tally's rows are among them


def sorted_name(name):
    """With the fields of each innermost literal in order."""
    return re.sub(r"\{[^{}]*\}", lambda m: "{" + ", ".join(sorted(m.group()[1:-1].split(", "))) + "}", name)


@explains("Cassandra quotes a user type's literal in an error with its fields in the order of a hash table")
def quoted_fields_in_hash_order(table, statement, tally, cassandra):
    literal = re.search(r"\{f\d+n*: ", tally.error)  # others may stand within it
    return bool(literal) and tally.error[:literal.start()] == cassandra.error[:literal.start()] and sorted(tally.error) == sorted(cassandra.error)


@explains("Of several fields that a user type's literal names and the type has not, Cassandra tells the first in the order of a hash table")
def unknown_fields_in_hash_order(table, statement, tally, cassandra):
    told = [re.search(r"\"Unknown field '(\w+)' in value of user defined type (\w+)\"", answer.error) for answer in (tally, cassandra)]
    if not all(told) or told[0].group(2) != told[1].group(2):
        return False
    return any(all(f"{t.group(1)}: " in literal for t in told) for literal in re.findall(r"\{[^{}]*", statement))


@explains("Cassandra names a column by a user type's literal with its fields in the order of a hash table")
def fields_in_hash_order(table, statement, tally, cassandra):
    if not answered(tally, cassandra) or not re.search(r"\{f\d+: ", statement.partition(" FROM ")[0]):
        return False
    names = [[(sorted_name(name), type_) for name, type_ in answer.columns] for answer in (tally, cassandra)]
    return names[0] == names[1] and list(map(len, tally.pages)) == list(map(len, cassandra.pages)) and rows(tally) == rows(cassandra)


def sorted_letters(text):
    """With the letters of each DynamicCompositeType in order, as Tally writes them."""
    return re.sub(r"(DynamicCompositeType)\(([^()]*=>[^()]*)\)", lambda m: f"{m.group(1)}({','.join(sorted(re.split(', ?', m.group(2))))})", text)


@explains("Cassandra writes the letters of a DynamicCompositeType in the order of a hash table")
def letters_in_hash_order(table, statement, tally, cassandra):
    described = [([(name, sorted_letters(type_)) for name, type_ in answer.columns], sorted_letters(answer.error)) for answer in (tally, cassandra)]
    same_pages = list(map(len, tally.pages)) == list(map(len, cassandra.pages)) and sorted_letters(repr(rows(tally))) == sorted_letters(repr(rows(cassandra)))
    return described[0] == described[1] and same_pages


@explains("Cassandra puts several groups on a page of one, where partitions are given by IN and each is a group")
def groups_over_in(table, statement, tally, cassandra):
    groups = re.search(r" GROUP BY ((?:\w+)(?:, \w+)*)", statement)
    listed = re.search(r"\bp\d IN (\(|\?)", statement)
    if not groups or not listed or not answered(tally, cassandra) or tally.columns != cassandra.columns:
        return False
    return rows(tally) == rows(cassandra) and max(map(len, tally.pages)) == 1 and max(map(len, cassandra.pages)) > 1


@explains("A batch is refused by both: Tally binds all its statements before it reads what changes of lists need, Cassandra one statement after the other")
def batch_refused_by_another_statement(table, statement, tally, cassandra):
    applied = re.search(r'"(Attempted to (delete|set) an element|List index \d+ out of bound)', cassandra.error)
    return bool(statement.startswith("BEGIN") and applied and tally.error and statement.count("; ") > 1)


@explains("of several wrong values of an INSERT JSON Cassandra reports the first in the order of a hash table, Tally the first in the table's order")
def json_values_in_hash_order(table, statement, tally, cassandra):
    return all((a.error or "").startswith("Error decoding JSON value for ") for a in (tally, cassandra))


@explains("Cassandra looks at the conditions of a row in the order of a hash table of their addresses: where one does not hold and another is wrong, chance decides")
def conditions_in_hash_order(table, statement, tally, cassandra):
    wrong = [re.search(r"Invalid 'unset' value in condition|Invalid comparison with|Invalid negative list index", answer.error) for answer in (tally, cassandra)]
    not_applied = [bool(rows(answer)) and rows(answer)[0].startswith("(False") for answer in (tally, cassandra)]
    several = " AND " in statement.partition(" IF ")[2] or statement.count(" IF ") > 1
    return several and any(wrong) and all(w or n for w, n in zip(wrong, not_applied))


@explains("Cassandra does not see what static lists hold in a batch with conditions, nor those of rows without one")
def list_in_a_conditional_batch(table, statement, tally, cassandra):
    lists = [name for name, type_ in table.static + table.regular if type_.startswith("list<")]
    return bool(statement.startswith("BEGIN") and " IF " in statement and any(f"{name}[" in statement for name in lists)
                and re.search(r'"Attempted to (delete|set) an element (from|on) a list which is null', cassandra.error))


@explains("Cassandra takes a bound on a column of a tuple or user type apart, when it stands beside a bound on several columns, and so ignores it")
def bound_on_a_tuple_beside_several(table, statement, tally, cassandra):
    where = statement.partition(" WHERE ")[2]
    tuples = [name for name, type_ in table.ck if type_.startswith("frozen<tuple<") or table.types.is_multicell(type_.removeprefix("frozen<").removesuffix(">"))]
    several = re.search(r"\((\w+), \w+(?:, \w+)*\) (?:<|>|<=|>=) ", where)
    alone = several and re.search(rf"\b{several.group(1)}\)? (?:<|>|<=|>=) ", where.replace(several.group(), ""))
    return bool(answered(tally, cassandra) and alone and several.group(1) in tuples)


@explains("Cassandra takes the write time of an element or field for a list where a value is made of it, and answers bytes of another type than it says")
def time_of_a_part_as_a_list(table, statement, tally, cassandra):
    if not answered(tally, cassandra) or not re.search(r"(?i)(WRITETIME|TTL)\(\w+(\[|\.)", statement.partition(" FROM ")[0]):
        return False
    others = [a == b or "writetime(" in a[0].lower() or "ttl(" in a[0].lower() for a, b in zip(tally.columns, cassandra.columns)]
    return len(tally.columns) == len(cassandra.columns) and all(others) and list(map(len, tally.pages)) == list(map(len, cassandra.pages))


@explains("Cassandra says that what makes or masks a timeuuid gives a legacy type of its own, whose values are the same")
def legacy_timeuuid(table, statement, tally, cassandra):
    if not answered(tally, cassandra) or len(tally.columns) != len(cassandra.columns):
        return False
    over_in = " GROUP BY " in statement and re.search(r"\bp\d IN (\(|\?)", statement)  # groups_over_in, too
    flat = [[row for page in answer.pages for row in page] for answer in (tally, cassandra)]
    if len(flat[0]) != len(flat[1]) or (not over_in and list(map(len, tally.pages)) != list(map(len, cassandra.pages))):
        return False
    values = [(a, b) for row, others in zip(*flat) for a, b in zip(row, others)]
    if not all(repr(a) == repr(b) or isinstance(a, uuid.UUID) and a.bytes == b for a, b in values):
        return False
    masks = [name for (name, type_), (_, other) in zip(tally.columns, cassandra.columns) if (type_, other) == ("timeuuid", "'org.apache.cassandra.db.marshal.LegacyTimeUUIDType'")]
    others = [(a, b) for a, b in zip(tally.columns, cassandra.columns) if a != b]
    return len(others) == len(masks) and all(re.search("mask_|timeuuid", name) for name in masks) and bool(masks)


@explains("Cassandra's mask_default of a timeuuid gives the legacy type, except of a clustering column in descending order; the bytes are the same")
def mask_of_a_descending_timeuuid(table, statement, tally, cassandra):
    if not answered(tally, cassandra) or len(tally.columns) != len(cassandra.columns):
        return False
    descending = [name for (name, type_), desc in zip(table.ck, table.desc) if desc and type_ == "timeuuid"]
    others = [(a, b) for a, b in zip(tally.columns, cassandra.columns) if a != b]
    values = [(a, b) for rows_of in zip(*([row for page in answer.pages for row in page] for answer in (tally, cassandra))) for a, b in zip(*rows_of)]
    return bool(others) and list(map(len, tally.pages)) == list(map(len, cassandra.pages)) and all(
        (a[1], b[1]) == ("'org.apache.cassandra.db.marshal.LegacyTimeUUIDType'", "timeuuid") and a[0] == b[0]
        and any(f"mask_default({name})" in a[0] for name in descending) for a, b in others) and all(
        repr(a) == repr(b) or isinstance(b, uuid.UUID) and b.bytes == a for a, b in values)


@explains("Cassandra words a syntax error after the path that its parser has tried; the line, the column and the token are the same")
def words_of_a_syntax_error(table, statement, tally, cassandra):
    places = [re.search(r'code=2000 \[Syntax error in CQL query\] message="line (\d+:\d+) (?:no viable alternative at|mismatched|extraneous|missing \S+ at) ?(?:input )?(\'\S+\')', a.error)
              for a in (tally, cassandra)]
    return all(places) and places[0].groups() == places[1].groups()


@explains("Cassandra's functions of collections refuse a frozen collection that is a clustering column in descending order")
def function_of_a_descending_collection(table, statement, tally, cassandra):
    descending = [name for (name, _), desc in zip(table.ck, table.desc) if desc]
    refused = re.search(r"Function system\.(?:collection|map)_\w+ requires an? [\w /]+ argument, but found argument (\w+) of type frozen<(?:list|set|map)<", cassandra.error)
    return bool(refused) and refused.group(1) in descending and refused.group() not in tally.error


@explains("Cassandra finds arithmetic of literals ambiguous where it is compared with a clustering column in descending order")
def arithmetic_beside_a_descending_column(table, statement, tally, cassandra):
    descending = [name for (name, _), desc in zip(table.ck, table.desc) if desc]
    ambiguous = re.search(r"\"Ambiguous '(.)' operation with args (\S+) and (\S+): use type hint", cassandra.error)
    if not ambiguous or tally.error == cassandra.error:
        return False
    sign, left, right = (re.escape(part) if part != "?" else r"\?" for part in ambiguous.groups())
    return any(re.search(rf"\b{name}\)? (?:=|<|>|<=|>=) \(?{left} {sign} {right}", statement) for name in descending)


@explains("Cassandra reads the first row of a partition alone where all conditions are on static columns, and does not see what lists of another hold")
def list_of_a_row_beside_static_conditions(table, statement, tally, cassandra):
    what, _, conditions = statement.partition(" IF ")
    named = re.findall(r"(?:^|\bAND )(\w+)(?:\[[^]]*\]|\.\w+)? (?:=|!=|<|>|<=|>=|IN)", conditions)
    static = [name for name, _ in table.static]
    elements = [name for name, type_ in table.regular if type_.startswith("list<") and f"{name}[" in what]
    return bool(not statement.startswith("BEGIN") and named and all(name in static for name in named) and elements
                and re.search(r'"Attempted to (delete|set) an element (from|on) a list which is null', cassandra.error))


@explains("Two faults of a select list: Cassandra finds the functions of all calls before it reads literals, Tally goes call by call")
def literal_within_a_call_that_is_refused(table, statement, tally, cassandra):
    what = statement.partition(" FROM ")[0]
    literal = re.search(r"\(mask_replace\(.*, 'x'\)|mask_replace\(.*, 'x'\) [-+]", what) or (re.search(r"\w\(floor\(", what) and re.search(r"\"Unable to (?:make|coerce)", tally.error))
    return bool(literal and tally.error and re.search(r'"(Invalid call to function|Type error: |the \S+ operation is not supported|Function system\.)', cassandra.error))


@explains("Cassandra puts a null that a column holds into a map of a select list, which no driver can read; Tally refuses it")
def null_in_a_selected_map(table, statement, tally, cassandra):
    return "(map<" in statement.partition(" FROM ")[0] and "null is not supported inside collections" in tally.error and "Failed decoding result column" in cassandra.error


@explains("A NaN that Java computes by % has the sign that the processor gives it, and is another key than NaN then")
def computed_nan_as_a_key(table, statement, tally, cassandra):
    reals = [name for name, type_ in table.pk + table.ck if type_ in ("double", "float")]
    return answered(tally, cassandra) and any(re.search(rf"\b{name}\)? (?:=|<|>|<=|>=) \(?\((?:double|float)\)\S+ % ", statement) for name in reals)


@explains("Cassandra fails inside at the JSON of a list of a select list that holds a null; only of decimals it writes an empty text")
def json_of_a_list_with_null_decimals(table, statement, tally, cassandra):
    listed = re.search(r"toJson\(\[(\w+)", statement) or re.search(r"SELECT JSON .*\[(\w+)", statement)
    if not listed or dict(table.columns).get(listed.group(1)) != "decimal" or not answered(tally, cassandra):
        return False
    plain = [[re.sub(r'(?:\\\\"){2}|""', "null", r) for r in rows(answer)] for answer in (tally, cassandra)]  # within the JSON of a row it is quoted
    return list(map(len, tally.pages)) == list(map(len, cassandra.pages)) and plain[0] == plain[1]


@explains("both refuse an aggregate of mask_replace with a value of another type: Cassandra tells first that it cannot choose the aggregate, Tally what is wrong with the value")
def aggregate_of_a_mask(table, statement, tally, cassandra):
    found = re.search(r"\b(\w+)\(mask_replace\(\w+, '", statement)
    return bool(found) and f"Ambiguous call to function {found.group(1)}:" in cassandra.error and "Unable to" in tally.error
