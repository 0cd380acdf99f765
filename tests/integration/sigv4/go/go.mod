module tally/tests/integration/sigv4/go

go 1.22

require (
	github.com/aws/aws-sigv4-auth-cassandra-gocql-driver-plugin v1.1.0
	github.com/gocql/gocql v1.7.0
)

require (
	github.com/aws/aws-sdk-go v1.49.12 // indirect
	github.com/golang/snappy v0.0.3 // indirect
	github.com/hailocab/go-hostpool v0.0.0-20160125115350-e80d13ce29ed // indirect
	github.com/jmespath/go-jmespath v0.4.0 // indirect
	gopkg.in/inf.v0 v0.9.1 // indirect
)
