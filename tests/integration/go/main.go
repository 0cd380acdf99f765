// Tally through the Apache Go driver: go run . HOST PORT [strict]
// Prints "ok NAME" or "FAILED NAME: why" for every check and a line of totals; exits non-zero when a check failed.
package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"net"
	"os"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
	"gopkg.in/inf.v0"
)

const ks = "go_driver"

var passed, failed int

// What Amazon Keyspaces refuses is refused.
var strict = len(os.Args) > 3 && os.Args[3] == "strict"

var inCassandraMode = len(os.Args) > 3 && os.Args[3] == "cassandra"

func check(name string, body func() error) {
	if err := body(); err != nil {
		failed++
		fmt.Printf("FAILED %s: %v\n", name, err)
		return
	}
	passed++
	fmt.Printf("ok %s\n", name)
}

func want(name string, got, expected any) error {
	if !reflect.DeepEqual(got, expected) {
		return fmt.Errorf("%s: got %v (%T), want %v (%T)", name, got, got, expected, expected)
	}
	return nil
}

func awaitActive(s *gocql.Session, table string) error {
	return awaitStatus(s, "SELECT status FROM system_schema_mcs.tables WHERE keyspace_name = ? AND table_name = ?", table)
}

func awaitStatus(s *gocql.Session, query, name string) error {
	for i := 0; i < 600; i++ {
		var status string
		err := s.Query(query, ks, name).Scan(&status)
		if err != nil && !errors.Is(err, gocql.ErrNotFound) {
			return err
		}
		if status == "ACTIVE" {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("%s did not become ACTIVE", name)
}

func createKeyspace(s *gocql.Session) error {
	if err := s.Query(fmt.Sprintf("CREATE KEYSPACE %s WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", ks)).Exec(); err != nil {
		return err
	}
	for i := 0; i < 600; i++ {
		var name string
		err := s.Query("SELECT keyspace_name FROM system_schema_mcs.keyspaces WHERE keyspace_name = ?", ks).Scan(&name)
		if !errors.Is(err, gocql.ErrNotFound) {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
	return errors.New("the keyspace was not created")
}

func createTable(s *gocql.Session, name, definition string) error {
	if err := s.Query(fmt.Sprintf("CREATE TABLE %s.%s (%s)", ks, name, definition)).Exec(); err != nil {
		return err
	}
	return awaitActive(s, name)
}

type scalar struct {
	cql   string
	value any
}

func scalars() []scalar {
	varint, _ := new(big.Int).SetString("-100000000000000000000000000000000000000", 10)
	uuid, _ := gocql.RandomUUID()
	all := []scalar{
		{"ascii", "plain"}, {"bigint", int64(math.MinInt64)}, {"blob", []byte{0, 255, 16}}, {"boolean", true},
		{"date", time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)}, {"decimal", inf.NewDec(-123456789, 4)}, {"double", -1.5e300},
		{"float", float32(0.5)}, {"inet", net.ParseIP("2001:db8::1")}, {"int", math.MinInt32}, {"smallint", int16(-32768)},
		{"text", "naïve ☃ 𝄞"}, {"time", 24*time.Hour - 1}, {"timestamp", time.UnixMilli(1763700000123).UTC()}, {"timeuuid", gocql.TimeUUID()},
		{"tinyint", int8(-128)}, {"uuid", uuid}, {"varint", varint}, {"duration", gocql.Duration{Months: 14, Days: 3, Nanoseconds: 7}},
	}
	if strict {
		all = all[:len(all)-1]
	}
	return all
}

func scalarRoundTrip(s *gocql.Session) error {
	all := scalars()
	var definition, columns, marks []string
	values, nulls := []any{1}, []any{2}
	for _, c := range all {
		definition = append(definition, "v_"+c.cql+" "+c.cql)
		columns = append(columns, "v_"+c.cql)
		marks = append(marks, "?")
		values, nulls = append(values, c.value), append(nulls, nil)
	}
	if err := createTable(s, "scalars", "id int PRIMARY KEY, "+strings.Join(definition, ", ")); err != nil {
		return err
	}
	insert := fmt.Sprintf("INSERT INTO %s.scalars (id, %s) VALUES (?, %s)", ks, strings.Join(columns, ", "), strings.Join(marks, ", "))
	for _, row := range [][]any{values, nulls} {
		if err := s.Query(insert, row...).Exec(); err != nil {
			return err
		}
	}
	for _, c := range all {
		got := reflect.New(reflect.TypeOf(c.value))
		if err := s.Query(fmt.Sprintf("SELECT v_%s FROM %s.scalars WHERE id = ?", c.cql, ks), 1).Scan(got.Interface()); err != nil {
			return fmt.Errorf("%s: %w", c.cql, err)
		}
		if fmt.Sprint(got.Elem().Interface()) != fmt.Sprint(c.value) {
			return fmt.Errorf("%s: got %v, want %v", c.cql, got.Elem(), c.value)
		}
		missing := reflect.New(reflect.PointerTo(reflect.TypeOf(c.value)))
		if err := s.Query(fmt.Sprintf("SELECT v_%s FROM %s.scalars WHERE id = ?", c.cql, ks), 2).Scan(missing.Interface()); err != nil {
			return fmt.Errorf("%s null: %w", c.cql, err)
		}
		if !missing.Elem().IsNil() {
			return fmt.Errorf("%s: null came back as %v", c.cql, missing.Elem().Elem())
		}
	}
	return nil
}

func collectionRoundTrip(s *gocql.Session) error {
	if err := createTable(s, "collections", `id int PRIMARY KEY, l list<text>, s set<int>, m map<text, int>, fl frozen<list<int>>,
		fs frozen<set<text>>, fm frozen<map<int, text>>, nested map<int, frozen<list<text>>>`); err != nil {
		return err
	}
	insert := fmt.Sprintf("INSERT INTO %s.collections (id, l, s, m, fl, fs, fm, nested) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", ks)
	if err := s.Query(insert, 1, []string{"b", "a", "b"}, []int{3, 1, 2}, map[string]int{"x": 1, "y": 2}, []int{9, 8}, []string{"p", "q"},
		map[int]string{1: "one"}, map[int][]string{7: {"u", "v"}}).Exec(); err != nil {
		return err
	}
	update := fmt.Sprintf("UPDATE %s.collections SET l = l + ?, s = s - ?, m['z'] = ? WHERE id = 1", ks)
	if err := s.Query(update, []string{"c"}, []int{3}, 26).Exec(); err != nil {
		return err
	}
	var l, fs []string
	var set, fl []int
	var m map[string]int
	var fm map[int]string
	var nested map[int][]string
	if err := s.Query(fmt.Sprintf("SELECT l, s, m, fl, fs, fm, nested FROM %s.collections WHERE id = 1", ks)).Scan(&l, &set, &m, &fl, &fs, &fm, &nested); err != nil {
		return err
	}
	return errors.Join(want("l", l, []string{"b", "a", "b", "c"}), want("s", set, []int{1, 2}), want("m", m, map[string]int{"x": 1, "y": 2, "z": 26}),
		want("fl", fl, []int{9, 8}), want("fs", fs, []string{"p", "q"}), want("fm", fm, map[int]string{1: "one"}),
		want("nested", nested, map[int][]string{7: {"u", "v"}}))
}

func pagingAndBatch(s *gocql.Session) error {
	if err := createTable(s, "pages", "pk int, ck int, v text, PRIMARY KEY (pk, ck)"); err != nil {
		return err
	}
	batch := s.Batch(gocql.UnloggedBatch)
	for ck := 0; ck < 25; ck++ {
		batch.Query(fmt.Sprintf("INSERT INTO %s.pages (pk, ck, v) VALUES (?, ?, ?)", ks), 1, ck, "v"+strconv.Itoa(ck))
	}
	if err := batch.Exec(); err != nil {
		return err
	}
	pages, seen := 0, []int{}
	var state []byte
	for {
		iter := s.Query(fmt.Sprintf("SELECT ck FROM %s.pages WHERE pk = 1 ORDER BY ck DESC", ks)).PageSize(7).PageState(state).Iter()
		state = iter.PageState()
		var ck int
		for iter.Scan(&ck) {
			seen = append(seen, ck)
		}
		if err := iter.Close(); err != nil {
			return err
		}
		pages++
		if len(state) == 0 {
			break
		}
	}
	for i, ck := range seen {
		if ck != 24-i {
			return fmt.Errorf("row %d is %d", i, ck)
		}
	}
	return errors.Join(want("pages", pages, 4), want("rows", len(seen), 25))
}

func serverErrors(s *gocql.Session) error {
	fails := func(query string, code int, text string) error {
		var e gocql.RequestError
		err := s.Query(query).Exec()
		if !errors.As(err, &e) || e.Code() != code || !strings.Contains(e.Message(), text) {
			return fmt.Errorf("%s: got %v, want code %#x with %q", query, err, code, text)
		}
		return nil
	}
	if strict {
		if err := fails("SELECT COUNT(*) FROM system.local", gocql.ErrCodeInvalid, "countRows is not yet supported."); err != nil {
			return err
		}
	}
	return errors.Join(fails("SELEC 1", gocql.ErrCodeSyntax, "line 1:0 no viable alternative at input 'SELEC'"),
		fails(fmt.Sprintf("SELECT * FROM %s.nowhere", ks), gocql.ErrCodeInvalid, "nowhere"),
		fails(fmt.Sprintf("CREATE KEYSPACE %s WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", ks), gocql.ErrCodeAlreadyExists, ks))
}

func charges(s *gocql.Session) error {
	if err := createTable(s, "mytable", `pk_col1 int, pk_col2 int, ck_col1 int, ck_col2 int, reg_col1 int, static_col1 int static,
		PRIMARY KEY ((pk_col1, pk_col2), ck_col1, ck_col2)`); err != nil {
		return err
	}
	iter := s.Query(fmt.Sprintf("INSERT INTO %s.mytable (pk_col1, pk_col2, ck_col1, ck_col2, reg_col1, static_col1) VALUES (2, 3, 4, 5, 6, 7)", ks)).
		CustomPayload(map[string][]byte{"capacity": {}}).Iter()
	payload := iter.GetCustomPayload()
	if err := iter.Close(); err != nil {
		return err
	}
	if len(payload["RequestCharge"]) != 8 {
		return fmt.Errorf("no RequestCharge in %v", payload)
	}
	var capacity struct {
		Row    int `json:"row_bytes"`
		Static int `json:"static_bytes"`
	}
	if err := json.Unmarshal(payload["capacity"], &capacity); err != nil {
		return err
	}
	units := math.Float64frombits(binary.BigEndian.Uint64(payload["RequestCharge"]))
	return errors.Join(want("units", units, 4.0), want("row bytes", capacity.Row, 134), want("static bytes", capacity.Static, 122))
}

func createType(s *gocql.Session, name, definition string) error {
	if err := s.Query(fmt.Sprintf("CREATE TYPE %s.%s (%s)", ks, name, definition)).Exec(); err != nil {
		return err
	}
	return awaitStatus(s, "SELECT status FROM system_schema_mcs.types WHERE keyspace_name = ? AND type_name = ?", name)
}

// The columns of a table and the fields of a type, as the driver knows them.
func known(s *gocql.Session, table, udt string) (string, error) {
	k, err := s.KeyspaceMetadata(ks)
	if errors.Is(err, gocql.ErrKeyspaceDoesNotExist) {
		return "", nil
	}
	if err != nil || k.Tables[table] == nil || k.UserTypes[udt] == nil {
		return "", err
	}
	var columns []string
	for name := range k.Tables[table].Columns {
		columns = append(columns, name)
	}
	sort.Strings(columns)
	return strings.Join(columns, ",") + " " + strings.Join(k.UserTypes[udt].FieldNames, ","), nil
}

func becomesKnown(s *gocql.Session, table, udt, expected string) error {
	var got string
	for i := 0; i < 600; i++ {
		var err error
		if got, err = known(s, table, udt); err != nil || got == expected {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
	return want("what the driver knows", got, expected)
}

func execAll(s *gocql.Session, statements ...string) error {
	for _, statement := range statements {
		if err := s.Query(strings.ReplaceAll(statement, "KS", ks)).Exec(); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

// What the driver knows of a type and a table follows their changes, told by events alone.
func changes(s *gocql.Session) error {
	if err := createType(s, "changing", "a int"); err != nil {
		return err
	}
	if err := createTable(s, "changed", "id int, ck int, v text, u frozen<changing>, PRIMARY KEY (id, ck)"); err != nil {
		return err
	}
	if err := becomesKnown(s, "changed", "changing", "ck,id,u,v a"); err != nil {
		return err
	}
	err := execAll(s, "INSERT INTO KS.changed (id, ck, v, u) VALUES (1, 2, 'three', {a: 4})", "ALTER TABLE KS.changed ADD (w int, x text)")
	if err == nil {
		err = awaitActive(s, "changed")
	}
	if err == nil {
		err = becomesKnown(s, "changed", "changing", "ck,id,u,v,w,x a")
	}
	var v string
	var w *int
	if err == nil {
		err = s.Query("SELECT v, w FROM "+ks+".changed WHERE id = 1").Scan(&v, &w)
	}
	if err != nil || !inCassandraMode {
		return errors.Join(err, want("an old row", fmt.Sprint(v, " ", w == nil), "three true"))
	}
	err = execAll(s, "ALTER TYPE KS.changing ADD b text", "ALTER TYPE KS.changing RENAME a TO aa", "ALTER TABLE KS.changed DROP v",
		"ALTER TABLE KS.changed RENAME ck TO position")
	if err == nil {
		err = becomesKnown(s, "changed", "changing", "id,position,u,w,x aa,b")
	}
	u, position := map[string]any{}, 0
	if err == nil {
		err = s.Query("SELECT position, u FROM "+ks+".changed WHERE id = 1").Scan(&position, &u)
	}
	return errors.Join(err, want("an old row", fmt.Sprint(position, u["aa"], u["b"]), "2 4 <nil>"))
}

// The driver keeps its metadata by SCHEMA_CHANGE events, a moment after they arrive.
func metadata(s *gocql.Session) error {
	for i := 0; i < 200; i++ {
		k, err := s.KeyspaceMetadata(ks)
		if err != nil && !errors.Is(err, gocql.ErrKeyspaceDoesNotExist) {
			return err
		}
		if err == nil && k.Tables["pages"] != nil {
			return want("clustering column", k.Tables["pages"].ClusteringColumns[0].Name, "ck")
		}
		time.Sleep(50 * time.Millisecond)
	}
	return errors.New("the driver heard of no table pages")
}

func main() {
	port, err := strconv.Atoi(os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	cluster := gocql.NewCluster(os.Args[1])
	cluster.Port = port
	cluster.Consistency = gocql.LocalQuorum
	cluster.Timeout = 10 * time.Second
	if ca := os.Getenv("TALLY_CA"); ca != "" { // the server speaks TLS only, and whoever comes must log in
		cluster.SslOpts = &gocql.SslOptions{CaPath: ca, EnableHostVerification: true}
		cluster.Authenticator = gocql.PasswordAuthenticator{Username: "cassandra", Password: "cassandra"}
	}
	var s *gocql.Session
	check("connect", func() error { s, err = cluster.CreateSession(); return err })
	if s == nil {
		fmt.Printf("%d passed, %d failed\n", passed, failed)
		os.Exit(1)
	}
	defer s.Close()
	check("create keyspace", func() error { return createKeyspace(s) })
	check("scalar round trip", func() error { return scalarRoundTrip(s) })
	check("collection round trip", func() error { return collectionRoundTrip(s) })
	check("changed types and tables", func() error { return changes(s) })
	check("paging and batch", func() error { return pagingAndBatch(s) })
	check("errors", func() error { return serverErrors(s) })
	check("charges", func() error { return charges(s) })
	check("metadata", func() error { return metadata(s) })
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	if failed > 0 {
		os.Exit(1)
	}
}
