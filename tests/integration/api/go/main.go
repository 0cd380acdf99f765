// Tally's AWS API through aws-sdk-go-v2: api-test URL SIGNED-URL. Prints what it sees, a JSON array [what, value] a line; test_sdks.py says what is right.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/keyspaces"
	"github.com/aws/aws-sdk-go-v2/service/keyspaces/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

var (
	ctx   = context.Background()
	input = bufio.NewScanner(os.Stdin)
)

func show(what string, value any) {
	line, err := json.Marshal([]any{what, value})
	if err != nil {
		panic(err)
	}
	fmt.Println(string(line))
}

// What a table is used for by CQL is done while this waits for a line.
func used() { input.Scan() }

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func client(url, region, key, secret, token string) *keyspaces.Client {
	return keyspaces.New(keyspaces.Options{Region: region, BaseEndpoint: &url, RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider(key, secret, token)})
}

// The class that a caller would catch, or "untyped" and the code.
func refusal(err error) []any {
	var (
		denied   *types.AccessDeniedException
		conflict *types.ConflictException
		missing  *types.ResourceNotFoundException
		quota    *types.ServiceQuotaExceededException
		invalid  *types.ValidationException
		internal *types.InternalServerException
		api      smithy.APIError
		response *smithyhttp.ResponseError
	)
	if !errors.As(err, &api) || !errors.As(err, &response) {
		return []any{fmt.Sprint(err)}
	}
	class, arn := "untyped "+api.ErrorCode(), ""
	switch {
	case errors.As(err, &denied):
		class = "AccessDeniedException"
	case errors.As(err, &conflict):
		class = "ConflictException"
	case errors.As(err, &missing):
		class, arn = "ResourceNotFoundException", aws.ToString(missing.ResourceArn)
	case errors.As(err, &quota):
		class = "ServiceQuotaExceededException"
	case errors.As(err, &invalid):
		class = "ValidationException"
	case errors.As(err, &internal):
		class = "InternalServerException"
	}
	return []any{class, response.HTTPStatusCode(), api.ErrorMessage(), arn}
}

// As the SDK's examples wait: until it has the status, or is gone. Tells the statuses that it sees, if asked to.
func await(c *keyspaces.Client, ks, table, status string, tell bool) {
	seen := ""
	for i := 0; i < 3000 && seen != status; i++ {
		now := "gone"
		t, err := c.GetTable(ctx, &keyspaces.GetTableInput{KeyspaceName: &ks, TableName: &table})
		var missing *types.ResourceNotFoundException
		if err == nil {
			now = string(t.Status)
		} else if !errors.As(err, &missing) {
			panic(err)
		}
		if tell && now != seen {
			show(table, now)
		}
		seen = now
		time.Sleep(20 * time.Millisecond)
	}
}

// A keyspace is a moment in coming; until then what is made in it is a conflict.
func whenKeyspaceIsThere[T any](call func() (T, error)) T {
	for i := 0; ; i++ {
		value, err := call()
		var busy *types.ConflictException
		if !errors.As(err, &busy) || i == 3000 {
			return must(value, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func column(name, of string) types.ColumnDefinition {
	return types.ColumnDefinition{Name: &name, Type: &of}
}

func tag(key, value string) []types.Tag { return []types.Tag{{Key: &key, Value: &value}} }

func columns(s *types.SchemaDefinition) []string {
	of := []string{}
	for _, c := range s.AllColumns {
		of = append(of, *c.Name+" "+*c.Type)
	}
	return of
}

func life(c *keyspaces.Client, ks string) {
	table, again := "orders", "again"
	settle := func(name string) { await(c, ks, name, "ACTIVE", false) }
	get := func(name string) *keyspaces.GetTableOutput {
		return must(c.GetTable(ctx, &keyspaces.GetTableInput{KeyspaceName: &ks, TableName: &name}))
	}
	created := must(c.CreateKeyspace(ctx, &keyspaces.CreateKeyspaceInput{KeyspaceName: &ks, Tags: tag("team", "a")}))
	show("create keyspace", *created.ResourceArn)

	schema := &types.SchemaDefinition{
		AllColumns:     []types.ColumnDefinition{column("id", "int"), column("at", "timestamp"), column("note", "text")},
		PartitionKeys:  []types.PartitionKey{{Name: aws.String("id")}},
		ClusteringKeys: []types.ClusteringKey{{Name: aws.String("at"), OrderBy: types.SortOrderDesc}}}
	made := whenKeyspaceIsThere(func() (*keyspaces.CreateTableOutput, error) {
		return c.CreateTable(ctx, &keyspaces.CreateTableInput{KeyspaceName: &ks, TableName: &table, SchemaDefinition: schema, Tags: tag("team", "a"),
			Comment: &types.Comment{Message: aws.String("of the shop")}, PointInTimeRecovery: &types.PointInTimeRecovery{Status: types.PointInTimeRecoveryStatusEnabled}})
	})
	show("create table", *made.ResourceArn)
	await(c, ks, table, "ACTIVE", true)
	t := get(table)
	show("get table", []any{columns(t.SchemaDefinition), *t.SchemaDefinition.PartitionKeys[0].Name, *t.SchemaDefinition.ClusteringKeys[0].Name,
		t.SchemaDefinition.ClusteringKeys[0].OrderBy, t.CapacitySpecification.ThroughputMode, *t.Comment.Message, t.PointInTimeRecovery.Status})
	show("age", time.Since(*t.CreationTimestamp).Seconds())
	show("use", table)
	used()

	must(c.UpdateTable(ctx, &keyspaces.UpdateTableInput{KeyspaceName: &ks, TableName: &table, AddColumns: []types.ColumnDefinition{column("more", "list<int>")}}))
	settle(table)
	show("add a column", columns(get(table).SchemaDefinition))
	must(c.UpdateTable(ctx, &keyspaces.UpdateTableInput{KeyspaceName: &ks, TableName: &table, CapacitySpecification: &types.CapacitySpecification{
		ThroughputMode: types.ThroughputModeProvisioned, ReadCapacityUnits: aws.Int64(5), WriteCapacityUnits: aws.Int64(6)}}))
	settle(table)
	capacity := get(table).CapacitySpecification
	show("change the capacity mode", []any{capacity.ThroughputMode, *capacity.ReadCapacityUnits, *capacity.WriteCapacityUnits})

	tags := func() []string {
		of := []string{}
		pages := keyspaces.NewListTagsForResourcePaginator(c, &keyspaces.ListTagsForResourceInput{ResourceArn: made.ResourceArn, MaxResults: aws.Int32(1)})
		for pages.HasMorePages() {
			for _, t := range must(pages.NextPage(ctx)).Tags {
				of = append(of, *t.Key+"="+*t.Value)
			}
		}
		return of
	}
	must(c.TagResource(ctx, &keyspaces.TagResourceInput{ResourceArn: made.ResourceArn, Tags: tag("cost", "b")}))
	settle(table)
	show("tag", tags())
	must(c.UntagResource(ctx, &keyspaces.UntagResourceInput{ResourceArn: made.ResourceArn, Tags: tag("team", "a")}))
	settle(table)
	show("untag", tags())

	address := "address"
	must(c.CreateType(ctx, &keyspaces.CreateTypeInput{KeyspaceName: &ks, TypeName: &address, FieldDefinitions: []types.FieldDefinition{
		{Name: aws.String("street"), Type: aws.String("text")}, {Name: aws.String("no"), Type: aws.String("int")}}}))
	of := must(c.GetType(ctx, &keyspaces.GetTypeInput{KeyspaceName: &ks, TypeName: &address}))
	for of.Status != types.TypeStatusActive {
		of = must(c.GetType(ctx, &keyspaces.GetTypeInput{KeyspaceName: &ks, TypeName: &address}))
	}
	fields := []string{}
	for _, f := range of.FieldDefinitions {
		fields = append(fields, *f.Name+" "+*f.Type)
	}
	show("type", []any{fields, must(c.ListTypes(ctx, &keyspaces.ListTypesInput{KeyspaceName: &ks})).Types})
	show("delete type", *must(c.DeleteType(ctx, &keyspaces.DeleteTypeInput{KeyspaceName: &ks, TypeName: &address})).TypeName)

	restored := must(c.RestoreTable(ctx, &keyspaces.RestoreTableInput{SourceKeyspaceName: &ks, SourceTableName: &table, TargetKeyspaceName: &ks, TargetTableName: &again,
		RestoreTimestamp: aws.Time(time.Now())}))
	show("restore", *restored.RestoredTableARN)
	await(c, ks, again, "ACTIVE", true)
	show("use", again)
	used()

	byPaginator, byToken := [][]string{}, [][]string{}
	names := func(of []types.TableSummary) []string {
		list := []string{}
		for _, t := range of {
			list = append(list, *t.TableName)
		}
		return list
	}
	pages := keyspaces.NewListTablesPaginator(c, &keyspaces.ListTablesInput{KeyspaceName: &ks, MaxResults: aws.Int32(1)})
	for pages.HasMorePages() {
		byPaginator = append(byPaginator, names(must(pages.NextPage(ctx)).Tables))
	}
	for token := (*string)(nil); ; {
		page := must(c.ListTables(ctx, &keyspaces.ListTablesInput{KeyspaceName: &ks, MaxResults: aws.Int32(1), NextToken: token}))
		byToken = append(byToken, names(page.Tables))
		if token = page.NextToken; token == nil {
			break
		}
	}
	show("list by pages", []any{byPaginator, byToken})

	refused(c, ks)
	for _, name := range []string{again, table} {
		must(c.DeleteTable(ctx, &keyspaces.DeleteTableInput{KeyspaceName: &ks, TableName: &name}))
		await(c, ks, name, "gone", true)
	}
	must(c.DeleteKeyspace(ctx, &keyspaces.DeleteKeyspaceInput{KeyspaceName: &ks}))
	for i := 0; i < 3000; i++ {
		if _, err := c.GetKeyspace(ctx, &keyspaces.GetKeyspaceInput{KeyspaceName: &ks}); err != nil {
			show("delete keyspace", refusal(err)[0])
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func refused(c *keyspaces.Client, ks string) {
	_, err := c.GetTable(ctx, &keyspaces.GetTableInput{KeyspaceName: &ks, TableName: aws.String("none")})
	show("refused", refusal(err))
	_, err = c.CreateKeyspace(ctx, &keyspaces.CreateKeyspaceInput{KeyspaceName: &ks})
	show("refused", refusal(err))
	_, err = c.CreateKeyspace(ctx, &keyspaces.CreateKeyspaceInput{KeyspaceName: aws.String("_x")})
	show("refused", refusal(err))
	for i := 0; i < 5; i++ { // the server holds four
		_, err = c.RestoreTable(ctx, &keyspaces.RestoreTableInput{SourceKeyspaceName: &ks, SourceTableName: aws.String("orders"), TargetKeyspaceName: aws.String("held"),
			TargetTableName: aws.String(fmt.Sprint("t", i))})
		if err != nil {
			break
		}
	}
	show("refused", refusal(err))
}

func main() {
	life(client(os.Args[1], "us-east-1", "any", "any", ""), "Shop")
	for input.Scan() { // a login a line: JSON of region, key, secret, token and a keyspace to make
		var l [5]string
		if err := json.Unmarshal(input.Bytes(), &l); err != nil {
			panic(err)
		}
		c := client(os.Args[2], l[0], l[1], l[2], l[3])
		if _, err := c.ListKeyspaces(ctx, &keyspaces.ListKeyspacesInput{}); err != nil {
			show("list keyspaces", refusal(err))
		} else if _, err = c.CreateKeyspace(ctx, &keyspaces.CreateKeyspaceInput{KeyspaceName: &l[4]}); err != nil {
			show("create keyspace", refusal(err))
		} else {
			show("create keyspace", []any{"ok"})
		}
	}
}
