// Command tasks grades a program by the tasks of TASKS.md: with a stand-in of the gateway that has
// faults, and not by its source.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

func main() { os.Exit(command(os.Args[1:], os.Stdout, os.Stderr)) }

func command(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("tasks", flag.ContinueOnError)
	flags.SetOutput(stderr)
	program := flags.String("program", "", "the program that is graded")
	only := flags.String("task", "", "only this task")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	path, err := filepath.Abs(*program)
	if err == nil {
		_, err = os.Stat(path)
	}
	if *program == "" || err != nil {
		_, _ = fmt.Fprintln(stderr, "tasks: -program does not name a program:", err)
		return 2
	}
	graded, code := false, 0
	for _, k := range tasks() {
		if *only != "" && *only != k.name {
			continue
		}
		problems, err := grade(k, path, patience)
		if err != nil {
			_, _ = fmt.Fprintln(stderr, "tasks:", err)
			return 2
		}
		graded, code = true, max(code, report(stdout, k, problems))
	}
	if !graded {
		_, _ = fmt.Fprintln(stderr, "tasks: there is no task", *only)
		return 2
	}
	return code
}

// report prints what is wrong with a program, and returns 1 if anything is.
func report(stdout io.Writer, k task, problems []string) int {
	if len(problems) == 0 {
		_, _ = fmt.Fprintln(stdout, "pass", k.name)
		return 0
	}
	_, _ = fmt.Fprintln(stdout, "FAIL", k.name)
	for _, problem := range problems {
		_, _ = fmt.Fprintln(stdout, "    ", problem)
	}
	return 1
}
