"""Random calls of functions on columns, for select lists. See differential.py."""
NUMBERS = ["int", "bigint", "smallint", "tinyint", "varint", "double", "float", "decimal"]
TEXTS = ["text", "ascii"]
MATH = ["abs", "exp", "log", "log10", "round"]
MASKS = ["mask_null({0})", "mask_default({0})", "mask_hash({0})", "mask_hash({0}, 'MD5')"]
OF_TEXT = ["mask_inner({0}, 1, 1)", "mask_outer({0}, 1, null)", "mask_inner({0}, null, 2, '#')", "mask_replace({0}, 'x')"]
OF_TIMES = {"timestamp": ["toDate({0})", "toUnixTimestamp({0})", "min_timeuuid({0})", "maxTimeuuid({0})", "{0} + 1d", "{0} - 2h30m", "{0} + 1mo2d",
                          "floor({0}, 1h)", "floor({0}, 1mo, '1960-02-29T12:00:00Z')", "floor({0}, 1y2d3h, -86400001)"],
            "date": ["toTimestamp({0})", "to_unix_timestamp({0})", "{0} + 1d", "{0} - 1mo", "{0} + 2h",
                     "floor({0}, 2d)", "floor({0}, 5mo3d, '1968-12-31')", "floor({0}, 1h)"],
            "time": ["floor({0}, 7m)", "floor({0}, 1d)", "floor({0}, 1h2ns)"],
            "timeuuid": ["toDate({0})", "to_timestamp({0})", "toUnixTimestamp({0})", "floor({0}, 3mo)", "floor({0}, 90s, 1000)"]}
OF_COLLECTIONS = ["collection_count({0})", "collection_min({0})", "collection_max({0})", "collection_sum({0})", "collection_avg({0})"]
OF_MAPS = ["map_keys({0})", "map_values({0})", "collection_count({0})"]
OF_VECTORS = ["similarity_cosine({0}, {0})", "similarity_euclidean({0}, [1.5, 2])", "similarity_dot_product([0.5, -1], {0})", "similarity_cosine({0}, [0, 0])"]
EVERY = [f"{f}({{0}})" for f in MATH] + MASKS + OF_TEXT + sum(OF_TIMES.values(), []) + OF_COLLECTIONS + OF_MAPS + OF_VECTORS


def forms(type_):
    """What can be called on a column of a type."""
    bare = type_[7:-1] if type_.startswith("frozen<") else type_
    if bare in NUMBERS:
        return [f"{f}({{0}})" for f in MATH] + MASKS[:3]
    if bare in TEXTS:
        return OF_TEXT + MASKS
    if bare in OF_TIMES:
        return OF_TIMES[bare] + MASKS[:2]
    if bare.startswith("map<"):
        return OF_MAPS
    if bare.startswith(("list<", "set<")):
        return OF_COLLECTIONS
    return OF_VECTORS if bare.startswith("vector<float, 2") else MASKS


def call(rng, name, type_):
    """A call on a column; now and then one of another type's functions, or of what another call gives."""
    choice = rng.choice(EVERY if rng.random() < 0.1 else forms(type_)).format(name)
    return rng.choice(EVERY).format(choice) if rng.random() < 0.1 else choice
