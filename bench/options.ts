// The command line of npm run bench.
import { parseArgs } from 'node:util';
import type { Plan } from './rounds.ts';

export interface Options {
  readonly command: string;
  readonly isQuick: boolean;
  readonly only: readonly string[];
  readonly plan: Plan;
  /** Major versions of Node.js to compare with the one that runs. */
  readonly nodes: readonly string[];
  /** How many the measurement of memory makes. */
  readonly requests: number;
  readonly hasPromotion: boolean;
  /** Another checkout, built, for compare. */
  readonly against: string | undefined;
  /** Whether the results replace those of docs/benchmarks.md. */
  readonly isPublished: boolean;
}

export const HELP = `npm run bench [-- <what>] [options]

What:
  calls        contestants against each other (the default; about 18 minutes)
  compare      this version and another one in alternating rounds (--against): the ratio of their CPU (about 60 minutes)
  growth       whether a call costs the same with much of something (about 10 minutes)
  scaling      one process and two, and what Redis takes (about 5 minutes)
  memory       at rest, under load, and whether it grows with the requests
  connections  whether memory grows with 50,000 connections of users (about 3 minutes)
  collector    how often and for how long the garbage collector pauses it, with other options of node beside
  relay        what it costs to pass a call on to a server behind the gateway: table, long, calls, lists, sessions, connections, profile (--only)
  guard        fails if some way of passing calls on costs more than twice what it may (under 3 minutes)
  profile      where the CPU time of a call goes
  start        from the start of the process to its first answer, and of postern dev to its banner
  rules        one decision of the rules about who may use what
  guards       what guards add to a call
  replay       postern rules replay over 100,000 lines
  search       how well tools are found by searching, and how long that takes
  tokens       a call with a token of the gateway's own, and a refresh
  observe      what the audit log and traces cost

Options:
  --quick               under a minute: 32 connections, 3 short rounds, main contestants
  --only a,b            only these contestants (by name or by the beginning of it), rows of compare (by a part of the name), cases of growth or collector, or parts of memory, scaling, relay or tokens
  --against folder      compare: another checkout of Postern, built
  --connections 1,32    only so many connections
  --rounds n            rounds of each contestant (5)
  --seconds n           length of a round (3)
  --requests n          requests of memory, for each store (1000000)
  --node 24,26          calls and start: on these versions of Node.js, beside the one that runs (about 5 minutes)
  --promotion           measure promotion with --quick, --only or --connections, too
  --publish             write the results into docs/benchmarks.md
  --help                this text`;

/** Undefined when help was asked for. */
export function readOptions(args: readonly string[]): Options | undefined {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      quick: { type: 'boolean', default: false },
      only: { type: 'string', default: '' },
      connections: { type: 'string' },
      rounds: { type: 'string' },
      seconds: { type: 'string' },
      requests: { type: 'string', default: '1000000' },
      node: { type: 'string', default: '' },
      against: { type: 'string' },
      promotion: { type: 'boolean', default: false },
      publish: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return undefined;
  const isQuick = values.quick;
  const only = splitList(values.only);
  const connections = splitList(values.connections ?? (isQuick ? '32' : '1,8,32,256'));
  return {
    command: positionals[0] ?? 'calls',
    isQuick,
    only,
    plan: {
      connections: connections.map((text) => readNumber('--connections', text)),
      rounds: readNumber('--rounds', values.rounds ?? (isQuick ? '3' : '5')),
      seconds: readNumber('--seconds', values.seconds ?? (isQuick ? '1' : '3')),
      warmUpSeconds: isQuick ? 1 : 5,
      leadInSeconds: 2,
    },
    nodes: splitList(values.node),
    against: values.against,
    requests: readNumber('--requests', values.requests),
    hasPromotion: values.promotion || !(isQuick || only.length > 0 || values.connections),
    isPublished: values.publish,
  };
}

const splitList = (text: string): readonly string[] =>
  text.split(',').filter((part) => part !== '');

function readNumber(option: string, text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1) {
    throw new Error(`${option} takes whole numbers from 1, not ${text}.`);
  }
  return value;
}
