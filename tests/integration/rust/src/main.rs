//! Tally through the scylla driver: rust-driver-test HOST PORT [strict]
//! Prints "ok NAME" or "FAILED NAME: why" for every check and a line of totals; exits non-zero when a check failed.

use std::collections::HashMap;
use std::error::Error;
use std::net::IpAddr;
use std::ops::ControlFlow;
use std::time::Duration;

use openssl::ssl::{SslContextBuilder, SslMethod, SslVerifyMode};
use scylla::client::execution_profile::ExecutionProfile;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::response::PagingState;
use scylla::statement::batch::{Batch, BatchType};
use scylla::statement::{Consistency, Statement};
use scylla::value::{Counter, CqlDate, CqlDecimal, CqlDuration, CqlTime, CqlTimestamp, CqlTimeuuid, CqlValue, CqlVarint};
use uuid::Uuid;

const KS: &str = "rust_driver";
type Outcome = Result<(), Box<dyn Error>>;

fn same<T: PartialEq + std::fmt::Debug>(what: &str, got: T, want: T) -> Outcome {
    if got == want {
        Ok(())
    } else {
        Err(format!("{what}: got {got:?}, want {want:?}").into())
    }
}

async fn await_active(s: &Session, table: &str) -> Outcome {
    let query = "SELECT status FROM system_schema_mcs.tables WHERE keyspace_name = ? AND table_name = ?";
    for _ in 0..600 {
        let rows = s.query_unpaged(query, (KS, table)).await?.into_rows_result()?;
        if let Some((status,)) = rows.maybe_first_row::<(String,)>()? {
            if status == "ACTIVE" {
                return Ok(());
            }
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Err(format!("{table} did not become ACTIVE").into())
}

async fn create_keyspace(s: &Session) -> Outcome {
    s.query_unpaged(format!("CREATE KEYSPACE {KS} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"), ()).await?;
    for _ in 0..600 {
        let rows = s.query_unpaged("SELECT keyspace_name FROM system_schema_mcs.keyspaces WHERE keyspace_name = ?", (KS,)).await?.into_rows_result()?;
        if rows.rows_num() == 1 {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Err("the keyspace was not created".into())
}

async fn create_table(s: &Session, name: &str, definition: &str) -> Outcome {
    s.query_unpaged(format!("CREATE TABLE {KS}.{name} ({definition})"), ()).await?;
    await_active(s, name).await
}

/// What Amazon Keyspaces refuses is refused.
fn strict() -> bool {
    std::env::args().nth(3).as_deref() == Some("strict")
}

fn scalars() -> Vec<(&'static str, CqlValue)> {
    vec![
        ("ascii", CqlValue::Ascii("plain".into())),
        ("bigint", CqlValue::BigInt(i64::MIN)),
        ("blob", CqlValue::Blob(vec![0, 255, 16])),
        ("boolean", CqlValue::Boolean(true)),
        ("date", CqlValue::Date(CqlDate(2147483648 + 20778))),
        ("decimal", CqlValue::Decimal(CqlDecimal::from_signed_be_bytes_and_exponent(vec![0xF8, 0xA4, 0x32, 0xEB], 4))),
        ("double", CqlValue::Double(-1.5e300)),
        ("float", CqlValue::Float(0.5)),
        ("inet", CqlValue::Inet("2001:db8::1".parse::<IpAddr>().unwrap())),
        ("int", CqlValue::Int(i32::MIN)),
        ("smallint", CqlValue::SmallInt(i16::MIN)),
        ("text", CqlValue::Text("naïve ☃ 𝄞".into())),
        ("time", CqlValue::Time(CqlTime(86_399_999_999_999))),
        ("timestamp", CqlValue::Timestamp(CqlTimestamp(1763700000123))),
        ("timeuuid", CqlValue::Timeuuid("8e14e760-7fa8-11eb-bc66-000000000001".parse::<CqlTimeuuid>().unwrap())),
        ("tinyint", CqlValue::TinyInt(i8::MIN)),
        ("uuid", CqlValue::Uuid(Uuid::new_v4())),
        ("varint", CqlValue::Varint(CqlVarint::from_signed_bytes_be(vec![0x80, 0, 0, 0, 0, 0, 0, 0, 0]))),
        ("duration", CqlValue::Duration(CqlDuration { months: 14, days: 3, nanoseconds: 7 })),
    ]
}

async fn scalar_round_trip(s: &Session) -> Outcome {
    let all: Vec<_> = scalars().into_iter().filter(|(t, _)| !strict() || *t != "duration").collect();
    let definition: Vec<String> = all.iter().map(|(t, _)| format!("v_{t} {t}")).collect();
    create_table(s, "scalars", &format!("id int PRIMARY KEY, {}", definition.join(", "))).await?;
    for (t, value) in &all {
        let insert = s.prepare(format!("INSERT INTO {KS}.scalars (id, v_{t}) VALUES (?, ?)")).await?;
        s.execute_unpaged(&insert, (1, value)).await?;
        s.execute_unpaged(&insert, (2, None::<CqlValue>)).await?;
        let select = s.prepare(format!("SELECT v_{t} FROM {KS}.scalars WHERE id = ?")).await?;
        let got = s.execute_unpaged(&select, (1,)).await?.into_rows_result()?.first_row::<(Option<CqlValue>,)>()?.0;
        same(t, got.as_ref(), Some(value))?;
        let missing = s.execute_unpaged(&select, (2,)).await?.into_rows_result()?.first_row::<(Option<CqlValue>,)>()?.0;
        same(t, missing, None)?;
    }
    Ok(())
}

type CollectionRow = (Vec<String>, Vec<i32>, HashMap<String, i32>, Vec<i32>, Vec<String>, HashMap<i32, String>, HashMap<i32, Vec<String>>);

async fn collection_round_trip(s: &Session) -> Outcome {
    create_table(
        s,
        "collections",
        "id int PRIMARY KEY, l list<text>, s set<int>, m map<text, int>, fl frozen<list<int>>, fs frozen<set<text>>, \
         fm frozen<map<int, text>>, nested map<int, frozen<list<text>>>",
    )
    .await?;
    let insert = s.prepare(format!("INSERT INTO {KS}.collections (id, l, s, m, fl, fs, fm, nested) VALUES (?, ?, ?, ?, ?, ?, ?, ?)")).await?;
    let m = HashMap::from([("x", 1), ("y", 2)]);
    let values = (1, vec!["b", "a", "b"], vec![3, 1, 2], m, vec![9, 8], vec!["p", "q"], HashMap::from([(1, "one")]), HashMap::from([(7, vec!["u", "v"])]));
    s.execute_unpaged(&insert, values).await?;
    let update = s.prepare(format!("UPDATE {KS}.collections SET l = l + ?, s = s - ?, m['z'] = ? WHERE id = 1")).await?;
    s.execute_unpaged(&update, (vec!["c"], vec![3], 26)).await?;
    let r = s.query_unpaged(format!("SELECT l, s, m, fl, fs, fm, nested FROM {KS}.collections WHERE id = 1"), ()).await?;
    let (l, set, m, fl, fs, fm, nested) = r.into_rows_result()?.first_row::<CollectionRow>()?;
    same("l", l, vec!["b".into(), "a".into(), "b".into(), "c".into()])?;
    same("s", set, vec![1, 2])?;
    same("m", m, HashMap::from([("x".into(), 1), ("y".into(), 2), ("z".into(), 26)]))?;
    same("fl", fl, vec![9, 8])?;
    same("fs", fs, vec!["p".into(), "q".into()])?;
    same("fm", fm, HashMap::from([(1, "one".into())]))?;
    same("nested", nested, HashMap::from([(7, vec!["u".into(), "v".into()])]))
}

async fn paging_and_batch(s: &Session) -> Outcome {
    create_table(s, "pages", "pk int, ck int, v text, PRIMARY KEY (pk, ck)").await?;
    let insert = s.prepare(format!("INSERT INTO {KS}.pages (pk, ck, v) VALUES (?, ?, ?)")).await?;
    let mut batch = Batch::new(BatchType::Unlogged);
    let mut values = Vec::new();
    for ck in 0..25 {
        batch.append_statement(insert.clone());
        values.push((1, ck, format!("v{ck}")));
    }
    s.batch(&batch, values).await?;
    let query = Statement::new(format!("SELECT ck FROM {KS}.pages WHERE pk = 1 ORDER BY ck DESC")).with_page_size(7);
    let (mut state, mut seen, mut pages) = (PagingState::start(), Vec::new(), 0);
    loop {
        let (page, next) = s.query_single_page(query.clone(), (), state).await?;
        for row in page.into_rows_result()?.rows::<(i32,)>()? {
            seen.push(row?.0);
        }
        pages += 1;
        match next.into_paging_control_flow() {
            ControlFlow::Break(()) => break,
            ControlFlow::Continue(next) => state = next,
        }
    }
    same("rows", seen, (0..25).rev().collect())?;
    same("pages", pages, 4)
}

async fn errors(s: &Session) -> Outcome {
    let nowhere = format!("SELECT * FROM {KS}.nowhere");
    let again = format!("CREATE KEYSPACE {KS} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}");
    let count = if strict() { "countRows is not yet supported." } else { "count" };
    let counted = if strict() { "SELECT COUNT(*) FROM system.local" } else { "SELECT count FROM system.local" };
    for (query, text) in [(counted, count), ("SELEC 1", "line 1:0 no viable alternative at input 'SELEC'"), (nowhere.as_str(), "nowhere"), (again.as_str(), KS)] {
        match s.query_unpaged(query, ()).await {
            Ok(_) => return Err(format!("{query} did not fail").into()),
            Err(e) if e.to_string().contains(text) => (),
            Err(e) => return Err(format!("{query}: {e}").into()),
        }
    }
    Ok(())
}

async fn counters(s: &Session) -> Outcome {
    create_table(s, "counters", "id int PRIMARY KEY, c counter").await?;
    for _ in 0..3 {
        s.query_unpaged(format!("UPDATE {KS}.counters SET c = c + 5 WHERE id = 1"), ()).await?;
    }
    let r = s.query_unpaged(format!("SELECT c FROM {KS}.counters WHERE id = 1"), ()).await?;
    same("counter", r.into_rows_result()?.first_row::<(Counter,)>()?.0 .0, 15)
}

/// This driver gives no access to a response's custom payload, so the charge is read where cqlsh users see it: in the trace.
async fn charge_in_trace(s: &Session) -> Outcome {
    create_table(s, "mytable", "pk_col1 int, pk_col2 int, ck_col1 int, ck_col2 int, reg_col1 int, static_col1 int static, PRIMARY KEY ((pk_col1, pk_col2), ck_col1, ck_col2)").await?;
    let mut insert = Statement::new(format!("INSERT INTO {KS}.mytable (pk_col1, pk_col2, ck_col1, ck_col2, reg_col1, static_col1) VALUES (2, 3, 4, 5, 6, 7)"));
    insert.set_tracing(true);
    let id = s.query_unpaged(insert, ()).await?.tracing_id().ok_or("no tracing id")?;
    let events = s.get_tracing_info(&id).await?.events;
    let charge = events.iter().filter_map(|e| e.activity.as_deref()).find(|a| a.starts_with("Charged"));
    same("charge", charge, Some("Charged 0 read units, 2 write units, 2 static write units"))
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let failed = runtime.block_on(run(&args[1], &args[2]));
    std::process::exit(if failed == 0 { 0 } else { 1 });
}

/// With TALLY_CA the server speaks TLS only, and whoever comes must log in.
fn trusted(builder: SessionBuilder) -> SessionBuilder {
    let Ok(ca) = std::env::var("TALLY_CA") else { return builder };
    let mut context = SslContextBuilder::new(SslMethod::tls_client()).expect("a TLS context");
    context.set_ca_file(ca).expect("the certificate in TALLY_CA");
    context.set_verify(SslVerifyMode::PEER);
    builder.tls_context(Some(context.build())).user("cassandra", "cassandra")
}

async fn run(host: &str, port: &str) -> usize {
    let (mut passed, mut failed) = (0, 0);
    let mut report = |name: &str, outcome: Outcome| match outcome {
        Ok(()) => {
            passed += 1;
            println!("ok {name}");
        }
        Err(e) => {
            failed += 1;
            println!("FAILED {name}: {e}");
        }
    };
    let profile = ExecutionProfile::builder().consistency(Consistency::LocalQuorum).build();
    let builder = trusted(SessionBuilder::new()).known_node(format!("{host}:{port}")).default_execution_profile_handle(profile.into_handle());
    let connected = builder.build().await;
    match connected {
        Err(e) => report("connect", Err(e.into())),
        Ok(s) => {
            report("connect", Ok(()));
            report("create keyspace", create_keyspace(&s).await);
            report("scalar round trip", scalar_round_trip(&s).await);
            report("collection round trip", collection_round_trip(&s).await);
            report("paging and batch", paging_and_batch(&s).await);
            report("errors", errors(&s).await);
            report("counters", counters(&s).await);
            report("charge in trace", charge_in_trace(&s).await);
        }
    }
    println!("{passed} passed, {failed} failed");
    failed
}
