// Command release prepares, checks and rehearses a release of this repository's
// modules. .ci/release and .ci/release-rehearsal run it; docs/releasing.md describes
// the whole.
//
//	release set VERSION               write VERSION where the repository states it
//	release check VERSION             fail unless HEAD may be released as VERSION
//	release rehearse [-go LIST] [VERSION]
//	                                  use the packed modules as a merchant does
//	release tags VERSION              print the commands that release HEAD
//	release third-party [-update]     compare THIRD_PARTY.md with what is linked
//	release modules                   print the directories of the published modules
//
// VERSION is that of const Version by default. Every module is published, except those
// that unpublished names.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
)

// unpublished reports whether no user imports the module in this directory.
func unpublished(dir string) bool {
	switch dir {
	case "bench", "contract", "doubling", "tools":
		return true
	}
	return strings.HasPrefix(dir, "contract/") || strings.HasPrefix(dir, "examples/")
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("which of set, check, rehearse, tags, third-party and modules?")
	}
	flags := flag.NewFlagSet(args[0], flag.ExitOnError)
	root := flags.String("root", "..", "the directory of the repository")
	toolchains := flags.String("go", "local", "what rehearse uses: toolchains, separated by commas")
	update := flags.Bool("update", false, "write THIRD_PARTY.md")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	repo, err := open(ctx, *root)
	if err != nil {
		return err
	}
	version := strings.TrimPrefix(flags.Arg(0), "v")
	if version == "" {
		if version, err = repo.constVersion(); err != nil {
			return err
		}
	}
	switch args[0] {
	case "set":
		return repo.set(version)
	case "check":
		return repo.check(version)
	case "rehearse":
		return rehearsal{repo: repo, version: "v" + version, out: os.Stdout}.run(strings.Split(*toolchains, ","))
	case "tags":
		return repo.printTags(os.Stdout, version)
	case "third-party":
		return thirdParty(ctx, repo, *update)
	case "modules":
		return repo.printModules(os.Stdout)
	default:
		return fmt.Errorf("there is no %s", args[0])
	}
}
