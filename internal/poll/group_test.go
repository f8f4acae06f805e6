package poll_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/internal/caller"
	"github.com/cryptogw/gateway/internal/poll"
)

// An outcome is what one poll reports.
type outcome struct {
	done       bool
	retryAfter time.Duration
}

// A service is polled for many tasks, in a bubble.
type service struct {
	took time.Duration                  // a poll, unless its context ends
	poll func(task, number int) outcome // the polls of each task are numbered from 1

	mu      sync.Mutex
	began   []begin
	polls   map[int]int
	running int
	most    int // polls that ran at a time
}

// A begin is the begin of one poll.
type begin struct {
	task int
	at   time.Time
}

// pollsUntil reports a task as done with so many polls.
func pollsUntil(polls int) func(int, int) outcome {
	return func(_, number int) outcome { return outcome{done: number >= polls} }
}

func never(int, int) outcome { return outcome{} }

// group returns a group of so many tasks of a service.
func (s *service) group(tasks int, i poll.Intervals) *poll.Group[string] {
	s.polls = map[int]int{}
	var all []poll.Task[string]
	for id := range tasks {
		all = append(all, &task{s, id})
	}
	return poll.NewGroup(all, i)
}

// pollsRunning is how many polls run; one may begin or end meanwhile.
func (s *service) pollsRunning() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running
}

// pollsBegun is how many polls have begun, and pollsOf how many of one task.
func (s *service) pollsBegun() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.began)
}

func (s *service) pollsOf(task int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.polls[task]
}

// tasks are the tasks in the order in which their polls began.
func (s *service) tasks() (all []int) {
	for _, b := range s.began {
		all = append(all, b.task)
	}
	return all
}

// A task is polled for at a service. Its result tells how it ended.
type task struct {
	*service
	id int
}

func (k *task) Poll(ctx context.Context) (string, bool, time.Duration) {
	k.mu.Lock()
	k.polls[k.id]++
	number := k.polls[k.id]
	k.began = append(k.began, begin{k.id, time.Now()})
	k.running++
	k.most = max(k.most, k.running)
	k.mu.Unlock()
	defer func() { k.mu.Lock(); k.running--; k.mu.Unlock() }()
	if poll.Sleep(ctx, k.took) != nil {
		return "interrupted", false, 0
	}
	o := k.poll(k.id, number)
	return fmt.Sprint("done ", k.id), o.done, o.retryAfter
}

func (k *task) Cancel(ctx context.Context) string {
	return fmt.Sprintf("cancelled %d: %v", k.id, context.Cause(ctx))
}

// all are the results of a group, in order.
func all(ctx context.Context, g *poll.Group[string]) (results []string) {
	for {
		result, ok := g.Next(ctx)
		if !ok {
			return results
		}
		results = append(results, result)
	}
}

// results are those of tasks in any order.
func results(format string, tasks int) (all []string) {
	for id := range tasks {
		all = append(all, fmt.Sprintf(format, id))
	}
	return all
}

var (
	second = poll.Intervals{Min: time.Second, Max: time.Second}
	minute = poll.Intervals{Min: time.Second, Max: time.Minute}
)

func TestGroup_withoutTasks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		g := (&service{}).group(0, second)
		result, ok := g.Next(t.Context())
		assert.False(t, ok)
		assert.Empty(t, result)
		g.Wait()
		assert.Zero(t, time.Since(begun))
	})
}

// Tasks that come later are polled like the first ones. The group ends when no task is
// left and the channel is closed; a name without a task is ignored.
func TestGroup_AddFrom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, begun, more := &service{poll: pollsUntil(2)}, time.Now(), make(chan string)
		g := s.group(1, second)
		g.AddFrom(more, func(name string) poll.Task[string] {
			if name == "none" {
				return nil
			}
			return &task{s, len(name)}
		})
		go func() {
			defer close(more)
			for _, name := range []string{"later", "none", "latest"} {
				time.Sleep(10 * time.Second)
				more <- name
			}
			time.Sleep(10 * time.Second)
		}()
		assert.Equal(t, []string{"done 0", "done 5", "done 6"}, all(t.Context(), g))
		assert.Equal(t, 40*time.Second, time.Since(begun), "until the channel is closed")
		assert.Equal(t, []int{0, 0, 5, 5, 6, 6}, s.tasks())
		g.Wait()
	})
}

// A group that waits for further tasks ends with its context.
func TestGroup_AddFrom_cancelled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		s, begun := &service{poll: pollsUntil(1)}, time.Now()
		g := s.group(1, second)
		g.AddFrom(make(chan string), func(string) poll.Task[string] { return nil })
		assert.Equal(t, []string{"done 0"}, all(ctx, g))
		assert.Equal(t, time.Minute, time.Since(begun))
	})
}

// One task is polled at once, and then in its intervals, which begin when a poll ends.
func TestGroup_oneTask(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &service{took: 100 * time.Millisecond, poll: pollsUntil(4)}
		begun := time.Now()
		g := s.group(1, second)
		assert.Equal(t, []string{"done 0"}, all(t.Context(), g))
		require.Len(t, s.began, 4)
		for n, b := range s.began {
			assert.Equal(t, time.Duration(n)*1100*time.Millisecond, b.at.Sub(begun))
		}
		_, ok := g.Next(t.Context())
		assert.False(t, ok, "it has no other task")
	})
}

// The waits of a task grow, and those of another task are its own.
func TestGroup_growingWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &service{poll: pollsUntil(200)}
		all(t.Context(), s.group(2, minute))
		last, longest := map[int]time.Time{}, map[int]time.Duration{}
		for _, b := range s.began {
			if at, ok := last[b.task]; ok {
				longest[b.task] = max(longest[b.task], b.at.Sub(at))
				require.GreaterOrEqual(t, b.at.Sub(at), time.Second)
			}
			last[b.task] = b.at
		}
		for id := range 2 {
			assert.Greater(t, longest[id], 50*time.Second)
			assert.LessOrEqual(t, longest[id], time.Minute+10*time.Millisecond, "but for the pace of the group")
		}
	})
}

// Results come as the tasks are done, each once.
func TestGroup_order(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		needs := []int{5, 1, 4, 2, 3}
		s := &service{poll: func(task, number int) outcome { return outcome{done: number == needs[task]} }}
		assert.Equal(t, []string{"done 1", "done 3", "done 4", "done 2", "done 0"}, all(t.Context(), s.group(5, second)))
		assert.Equal(t, map[int]int{0: 5, 1: 1, 2: 4, 3: 2, 4: 3}, s.polls)
	})
}

// Next is the task that has been due for the longest: with equal intervals, all tasks
// in turn, in the same order each time.
func TestGroup_turns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const tasks, turns = 250, 5 // more tasks than are polled within an interval
		s := &service{poll: pollsUntil(turns)}
		all(t.Context(), s.group(tasks, second))
		order := s.tasks()
		require.Len(t, order, tasks*turns)
		first := order[:tasks]
		for turn := range turns {
			assert.Equal(t, first, order[turn*tasks:(turn+1)*tasks], "turn %d", turn+1)
		}
		assert.Len(t, slices.Compact(slices.Sorted(slices.Values(first))), tasks)
	})
}

// The task that is due first comes first, whenever it was polled last.
func TestGroup_theEarliestFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var last time.Time
		s := &service{poll: pollsUntil(20)}
		g := s.group(40, minute)
		all(t.Context(), g)
		for _, b := range s.began {
			assert.False(t, b.at.Before(last))
			last = b.at
		}
		assert.Len(t, s.began, 800)
	})
}

// At most 8 polls run at a time, and as many do where that is needed.
func TestGroup_concurrency(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ tasks, most int }{{1, 1}, {7, 7}, {8, 8}, {9, 8}, {100, 8}} {
		t.Run(fmt.Sprint(tt.tasks), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &service{took: 10 * time.Second, poll: pollsUntil(1)}
				assert.Len(t, all(t.Context(), s.group(tt.tasks, second)), tt.tasks)
				assert.Equal(t, tt.most, s.most)
			})
		})
	}
}

// At most 100 polls begin within the shortest interval, at even distances.
func TestGroup_pace(t *testing.T) {
	t.Parallel()
	for _, shortest := range []time.Duration{time.Second, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			s := &service{poll: pollsUntil(1)}
			all(t.Context(), s.group(300, poll.Intervals{Min: shortest, Max: time.Hour}))
			require.Len(t, s.began, 300)
			for n, b := range s.began {
				require.Equal(t, time.Duration(n)*shortest/100, b.at.Sub(begun), "poll %d", n)
			}
		})
	}
}

// Ten thousand tasks are polled in turn: none twice while another waits for its first
// poll, never more than 8 at a time or 100 within an interval.
func TestGroup_tenThousandTasks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const tasks = 10_000
		s := &service{took: 50 * time.Millisecond, poll: pollsUntil(2)}
		got := all(t.Context(), s.group(tasks, minute))
		assert.Len(t, slices.Compact(slices.Sorted(slices.Values(got))), tasks)
		require.Len(t, s.began, 2*tasks, "no poll is wasted")
		assert.LessOrEqual(t, s.most, 8)
		for i := 100; i < len(s.began); i++ {
			require.GreaterOrEqual(t, s.began[i].at.Sub(s.began[i-100].at), time.Second)
		}
	})
}

// No task is starved: where none is ever done, all are polled alike.
func TestGroup_fairness(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &service{took: time.Second, poll: never}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		got := all(ctx, s.group(100, poll.Intervals{Min: 2 * time.Second, Max: 30 * time.Second}))
		assert.ElementsMatch(t, results("cancelled %d: context deadline exceeded", 100), got)
		least, most := len(s.began), 0
		for _, n := range s.polls {
			least, most = min(least, n), max(most, n)
		}
		assert.Greater(t, least, most/2)
	})
}

// Where the service asks one task to wait, no poll of any task begins meanwhile. A
// shorter wait that another is asked for afterwards does not shorten that.
func TestGroup_RetryAfter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		s := &service{took: 15 * time.Millisecond} // so that a second poll begins before the first has ended
		s.poll = func(task, number int) outcome {
			s.mu.Lock()
			defer s.mu.Unlock()
			switch {
			case number == 1 && task == s.began[0].task:
				return outcome{retryAfter: 10 * time.Minute}
			case number == 1 && task == s.began[1].task:
				return outcome{retryAfter: time.Minute}
			default:
				return outcome{done: true}
			}
		}
		assert.ElementsMatch(t, results("done %d", 50), all(t.Context(), s.group(50, second)))
		require.Len(t, s.began, 52)
		assert.Equal(t, 10*time.Millisecond, s.began[1].at.Sub(begun))
		assert.Equal(t, 10*time.Minute+15*time.Millisecond, s.began[2].at.Sub(begun))
	})
}

// The task that was asked to wait does so, and its next waits are drawn as before.
func TestGroup_RetryAfter_oneTask(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		s := &service{poll: func(_, number int) outcome {
			return outcome{done: number == 3, retryAfter: []time.Duration{time.Hour, 0, 0}[number-1]}
		}}
		all(t.Context(), s.group(1, second))
		require.Len(t, s.began, 3)
		assert.Equal(t, time.Hour, s.began[1].at.Sub(begun))
		assert.Equal(t, time.Hour+time.Second, s.began[2].at.Sub(begun))
	})
}

// When the context ends, every task that is left is cancelled, once.
func TestGroup_cancelled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		s := &service{took: 10 * time.Second, poll: pollsUntil(1)}
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(25*time.Second, func() { cancel(errors.New("closing")) })
		got := all(ctx, s.group(100, second))
		done := slices.IndexFunc(got, func(result string) bool { return result[0] == 'c' })
		assert.Equal(t, 16, done, "8 polls of 10 s at a time")
		for _, result := range got[done:] {
			assert.Regexp(t, `^cancelled \d+: closing$`, result)
		}
		assert.Len(t, slices.Compact(slices.Sorted(slices.Values(got))), 100)
		assert.Equal(t, 25*time.Second, time.Since(begun), "it does not wait for anything else")
		assert.Zero(t, s.pollsRunning())
		assert.Equal(t, 24, s.pollsBegun())
	})
}

// With a context that has ended, no poll begins.
func TestGroup_cancelledBefore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		s := &service{poll: pollsUntil(1)}
		assert.ElementsMatch(t, results("cancelled %d: context canceled", 20), all(ctx, s.group(20, second)))
		assert.Empty(t, s.began)
	})
}

// A task that is done although its context has ended is not cancelled.
func TestGroup_doneDespiteTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := &service{poll: func(int, int) outcome {
			cancel()
			synctest.Wait() // until the group has noticed
			return outcome{done: true}
		}}
		assert.Equal(t, []string{"done 0"}, all(ctx, s.group(1, second)))
	})
}

// Polls run only while somebody waits for a result.
func TestGroup_noPollInTheBackground(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &service{poll: pollsUntil(1)}
		g := s.group(10, second)
		_, ok := g.Next(t.Context())
		require.True(t, ok)
		began := s.pollsBegun()
		time.Sleep(time.Hour)
		synctest.Wait()
		assert.Equal(t, began, s.pollsBegun())
		assert.Len(t, all(t.Context(), g), 9)
	})
}

// Wait returns when no poll is running any more.
func TestGroup_Wait(t *testing.T) {
	t.Parallel()
	for _, cancelled := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			s := &service{took: 10 * time.Second, poll: pollsUntil(1)}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			g := s.group(100, second)
			_, ok := g.Next(ctx)
			require.True(t, ok)
			synctest.Wait()
			assert.Positive(t, s.pollsRunning())
			want := 10*time.Second + 70*time.Millisecond // the last of 8 began 70 ms after the first
			if cancelled {
				cancel()
				want = 10 * time.Second
			}
			g.Wait()
			assert.Zero(t, s.pollsRunning())
			assert.Equal(t, want, time.Since(begun))
			assert.Equal(t, 8, s.pollsBegun())
			g.Wait() // at once
		})
	}
}

// Polls that nobody waits for end by themselves: a bubble reports goroutines that do
// not.
func TestGroup_withoutWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &service{took: time.Second, poll: pollsUntil(1)}
		_, ok := s.group(100, second).Next(t.Context())
		require.True(t, ok)
		synctest.Wait()
		assert.Equal(t, 7, s.pollsRunning())
	})
}

// A panic of a poll reaches the goroutine that waits, and the others still end.
func TestGroup_panic(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		poll func()
		want any
	}{
		{"a panic", func() { panic("a bug") }, "a bug"},
		{"the end of its goroutine", runtime.Goexit, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &service{took: time.Second, poll: func(task, _ int) outcome {
					if task == 3 {
						tt.poll()
					}
					return outcome{}
				}}
				g := s.group(5, second)
				var recovered any
				returned, done := false, make(chan struct{})
				go func() {
					defer close(done)
					defer func() { recovered = recover() }()
					all(t.Context(), g)
					returned = true
				}()
				<-done
				assert.False(t, returned)
				if panicked, ok := recovered.(*caller.Panic); ok {
					recovered = panicked.Value
				}
				assert.Equal(t, tt.want, recovered)
				assert.Equal(t, 1, s.pollsOf(3))
				g.Wait()
				assert.Zero(t, s.pollsRunning())
			})
		})
	}
}

// The result of a poll that is not done is dropped, and so is its end after the
// context has ended.
func TestGroup_onlyResultsOfDoneTasks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		s := &service{took: time.Second, poll: never}
		assert.ElementsMatch(t, results("cancelled %d: context deadline exceeded", 3), all(ctx, s.group(3, second)))
	})
}
