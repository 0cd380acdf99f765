// Tally's AWS API through aws-sdk-go-v2: api-test URL. Prints "ok NAME" per check, and totals.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/keyspaces"
	"github.com/aws/aws-sdk-go-v2/service/keyspaces/types"
)

var passed, failed int

func check(name string, err error, ok bool) {
	if err == nil && ok {
		passed++
		fmt.Println("ok", name)
		return
	}
	failed++
	fmt.Println("FAILED", name, err)
}

// As the SDK's examples wait; false: not within a minute.
func awaitStatus(c *keyspaces.Client, keyspace, table string, status types.TableStatus) bool {
	for i := 0; i < 600; i++ {
		t, err := c.GetTable(context.Background(), &keyspaces.GetTableInput{KeyspaceName: &keyspace, TableName: &table})
		if err == nil && t.Status == status {
			return true
		}
		time.Sleep(100 * time.Millisecond)
	}
	return false
}

func main() {
	ctx := context.Background()
	c := keyspaces.New(keyspaces.Options{Region: "us-east-1", BaseEndpoint: aws.String(os.Args[1]), RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("any", "any", "")})
	ks, table := aws.String("GoShop"), aws.String("orders")

	made, err := c.CreateKeyspace(ctx, &keyspaces.CreateKeyspaceInput{KeyspaceName: ks, Tags: []types.Tag{{Key: aws.String("a"), Value: aws.String("b")}}})
	check("create keyspace", err, err == nil && *made.ResourceArn == "arn:aws:cassandra:us-east-1:111122223333:/keyspace/GoShop/")

	create := &keyspaces.CreateTableInput{KeyspaceName: ks, TableName: table, SchemaDefinition: &types.SchemaDefinition{
		AllColumns:     []types.ColumnDefinition{{Name: aws.String("id"), Type: aws.String("int")}, {Name: aws.String("at"), Type: aws.String("timestamp")}},
		PartitionKeys:  []types.PartitionKey{{Name: aws.String("id")}},
		ClusteringKeys: []types.ClusteringKey{{Name: aws.String("at"), OrderBy: types.SortOrderDesc}}},
		PointInTimeRecovery: &types.PointInTimeRecovery{Status: types.PointInTimeRecoveryStatusEnabled}}
	for i := 0; i < 600; i++ { // the keyspace is a moment in coming
		_, err = c.CreateTable(ctx, create)
		var busy *types.ConflictException
		if !errors.As(err, &busy) {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	check("create table", err, true)
	check("await ACTIVE", nil, awaitStatus(c, *ks, *table, types.TableStatusActive))

	got, err := c.GetTable(ctx, &keyspaces.GetTableInput{KeyspaceName: ks, TableName: table})
	check("get table", err, err == nil && len(got.SchemaDefinition.AllColumns) == 2 && got.CreationTimestamp != nil &&
		time.Since(*got.CreationTimestamp) < 10*time.Minute && got.CapacitySpecification.ThroughputMode == types.ThroughputModePayPerRequest)

	_, err = c.UpdateTable(ctx, &keyspaces.UpdateTableInput{KeyspaceName: ks, TableName: table, CapacitySpecification: &types.CapacitySpecification{
		ThroughputMode: types.ThroughputModeProvisioned, ReadCapacityUnits: aws.Int64(5), WriteCapacityUnits: aws.Int64(6)}})
	check("change the capacity mode", err, awaitStatus(c, *ks, *table, types.TableStatusActive))

	_, err = c.TagResource(ctx, &keyspaces.TagResourceInput{ResourceArn: got.ResourceArn, Tags: []types.Tag{{Key: aws.String("k"), Value: aws.String("v")}}})
	check("tag", err, awaitStatus(c, *ks, *table, types.TableStatusActive))
	tags, err := c.ListTagsForResource(ctx, &keyspaces.ListTagsForResourceInput{ResourceArn: got.ResourceArn})
	check("list tags", err, err == nil && len(tags.Tags) == 1 && *tags.Tags[0].Value == "v")

	restored := aws.String("again")
	_, err = c.RestoreTable(ctx, &keyspaces.RestoreTableInput{SourceKeyspaceName: ks, SourceTableName: table, TargetKeyspaceName: ks, TargetTableName: restored,
		RestoreTimestamp: aws.Time(time.Now())})
	check("restore", err, awaitStatus(c, *ks, *restored, types.TableStatusActive))

	names := 0
	pages := keyspaces.NewListTablesPaginator(c, &keyspaces.ListTablesInput{KeyspaceName: ks, MaxResults: aws.Int32(1)})
	for pages.HasMorePages() {
		page, pageErr := pages.NextPage(ctx)
		if pageErr != nil {
			err = pageErr
			break
		}
		names += len(page.Tables)
	}
	check("list by pages", err, names == 2)

	_, err = c.DeleteTable(ctx, &keyspaces.DeleteTableInput{KeyspaceName: ks, TableName: restored})
	check("delete", err, true)
	_, err = c.GetTable(ctx, &keyspaces.GetTableInput{KeyspaceName: ks, TableName: aws.String("none")})
	var missing *types.ResourceNotFoundException
	check("what is missing is told as such", nil, errors.As(err, &missing) && missing.ResourceArn != nil)
	_, err = c.CreateKeyspace(ctx, &keyspaces.CreateKeyspaceInput{KeyspaceName: aws.String("_x")})
	var invalid *types.ValidationException
	check("what is wrong is told as such", nil, errors.As(err, &invalid))

	fmt.Printf("%d passed, %d failed\n", passed, failed)
	if failed > 0 {
		os.Exit(1)
	}
}
