// Logs in to Tally by AWS's SigV4 plugin for gocql: program HOST PORT TLS-PORT CA
// A login a line on stdin, a JSON array of transport (plain or tls), region, key, secret and token; a line each of what came of it; test_sigv4.py says what is right.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strconv"

	"github.com/aws/aws-sigv4-auth-cassandra-gocql-driver-plugin/sigv4"
	"github.com/gocql/gocql"
)

func login(transport, region, key, secret, token string) []string {
	cluster := gocql.NewCluster(os.Args[1])
	port := os.Args[2]
	if transport == "tls" {
		port = os.Args[3]
		cluster.SslOpts = &gocql.SslOptions{CaPath: os.Args[4], EnableHostVerification: true}
	}
	cluster.Port, _ = strconv.Atoi(port)
	cluster.Logger = silent{}
	cluster.ReconnectionPolicy = &gocql.ConstantReconnectionPolicy{MaxRetries: 1}
	cluster.Authenticator = sigv4.AwsAuthenticator{Region: region, AccessKeyId: key, SecretAccessKey: secret, SessionToken: token}
	session, err := cluster.CreateSession()
	if err != nil {
		return []string{fmt.Sprintf("%T", err), err.Error()}
	}
	defer session.Close()
	var local string
	if err := session.Query("SELECT key FROM system.local").Scan(&local); err != nil {
		return []string{fmt.Sprintf("%T", err), err.Error()}
	}
	return []string{"ok", local}
}

// gocql logs to stderr what it answers, too.
type silent struct{}

func (silent) Print(...any)          {}
func (silent) Printf(string, ...any) {}
func (silent) Println(...any)        {}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var l [5]string
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			panic(err)
		}
		answer, err := json.Marshal(login(l[0], l[1], l[2], l[3], l[4]))
		if err != nil {
			panic(err)
		}
		fmt.Println(string(answer))
	}
}
