// Reads an Iceberg table with iceberg-go, and writes its rows to standard output as an Arrow IPC stream.
//
//	iceberg_go METADATA.json
//
// With -version it prints the version of iceberg-go. An error goes to standard error, with status 1.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
)

const module = "github.com/apache/iceberg-go"

func main() {
	if os.Args[1] == "-version" {
		fmt.Println(version())
		return
	}
	if err := write(context.Background(), "file://"+os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func version() string {
	info, _ := debug.ReadBuildInfo()
	for _, dependency := range info.Deps {
		if dependency.Path == module {
			return dependency.Version
		}
	}
	return "unknown"
}

func write(ctx context.Context, metadata string) error {
	found, err := table.NewFromLocation(ctx, table.Identifier{"db", "t"}, metadata, io.LoadFSFunc(nil, metadata), nil)
	if err != nil {
		return err
	}
	rows, err := found.Scan().ToArrowTable(ctx)
	if err != nil {
		return err
	}
	defer rows.Release()
	stream := ipc.NewWriter(os.Stdout, ipc.WithSchema(rows.Schema()))
	batches := array.NewTableReader(rows, 0)
	defer batches.Release()
	for batches.Next() {
		if err := stream.Write(batches.RecordBatch()); err != nil {
			return err
		}
	}
	return stream.Close()
}
