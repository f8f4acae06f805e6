package main

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
)

// awsSDK is the AWS SDK with RunTask of ECS, for which it sends a client token of its own with every
// call and retries with it, unless the caller gives it one: that of the order.
func awsSDK(key keyOfWhat, honours bool) client {
	return client{
		name:    "aws-sdk-go-v2",
		variant: key.variant(honours),
		module:  "github.com/aws/aws-sdk-go-v2",
		madeFor: "services that honour client tokens, which those of AWS do",
		keys:    honours,
		success: `{"tasks":[],"failures":[]}`,
		open: func(e environment) (create, error) {
			c := ecs.New(ecs.Options{
				BaseEndpoint: &e.url,
				Region:       "eu-central-1",
				Credentials:  credentials.NewStaticCredentialsProvider("key", "secret", ""),
				HTTPClient:   awshttp.NewBuildableClient().WithTimeout(e.timeout),
			})
			return func(ctx context.Context, order string) error {
				task := &ecs.RunTaskInput{TaskDefinition: aws.String("invoice"), Group: &order}
				if key == ofTheOrder {
					task.ClientToken = &order
				}
				_, err := c.RunTask(ctx, task)
				return err
			}, nil
		},
	}
}
