// Is a history of conditional statements linearisable? Each partition key is a register of its own, which is read, set, made when it is not there, set
// when it has a value (compare-and-set) and deleted; the checker is Porcupine (https://github.com/anishathalye/porcupine).
//
// On standard input, one JSON object a line: {"client": 1, "key": "k", "kind": "cas", "from": "a", "to": "b", "applied": true, "value": "a",
// "call": 10, "return": 12}. from, to, value: null is no row. return null: nobody knows whether it was done (the server was killed); it may have taken
// effect at any time from its call on, or never. Prints "linearisable" or "not linearisable: KEY", and ends with 0 or 1; 2: the input is no history.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/anishathalye/porcupine"
)

type operation struct {
	Client  int     `json:"client"`
	Key     string  `json:"key"`
	Kind    string  `json:"kind"` // read, set, insert (IF NOT EXISTS), cas (IF v = from), delete (IF EXISTS)
	From    *string `json:"from"`
	To      *string `json:"to"`
	Applied bool    `json:"applied"`
	Value   *string `json:"value"` // of a read, and of a condition that did not hold: what was there
	Call    int64   `json:"call"`
	Return  *int64  `json:"return"`
}

func same(a, b *string) bool {
	return (a == nil && b == nil) || (a != nil && b != nil && *a == *b)
}

// What a statement does to a register that holds state: whether it takes effect, and what is there then.
func apply(state *string, op operation) (bool, *string) {
	switch op.Kind {
	case "set":
		return true, op.To
	case "insert":
		if state != nil {
			return false, state
		}
		return true, op.To
	case "cas":
		if !same(state, op.From) || state == nil {
			return false, state
		}
		return true, op.To
	case "delete":
		return state != nil, nil
	}
	return true, state
}

func step(s, input, _ interface{}) (bool, interface{}) {
	state, op := s.(*string), input.(operation)
	applied, next := apply(state, op)
	if op.Return == nil {
		return true, next
	}
	if op.Kind == "read" {
		return same(state, op.Value), state
	}
	if applied != op.Applied {
		return false, state
	}
	if !applied && op.Kind != "delete" && !same(state, op.Value) {
		return false, state
	}
	return true, next
}

var model = porcupine.Model{
	Init: func() interface{} { return (*string)(nil) },
	Step: step,
	Equal: func(a, b interface{}) bool { return same(a.(*string), b.(*string)) },
}

func read() (map[string][]porcupine.Operation, error) {
	keys := map[string][]porcupine.Operation{}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var op operation
		if err := json.Unmarshal(lines.Bytes(), &op); err != nil {
			return nil, err
		}
		end := int64(math.MaxInt64)
		if op.Return != nil {
			end = *op.Return
		}
		keys[op.Key] = append(keys[op.Key], porcupine.Operation{ClientId: op.Client, Input: op, Call: op.Call, Return: end})
	}
	return keys, lines.Err()
}

func main() {
	keys, err := read()
	if err != nil || len(keys) == 0 {
		fmt.Println("no history:", err)
		os.Exit(2)
	}
	for key, history := range keys {
		if result := porcupine.CheckOperationsTimeout(model, history, time.Minute); result != porcupine.Ok {
			fmt.Println("not linearisable:", key, result)
			os.Exit(1)
		}
	}
	fmt.Println("linearisable")
}
