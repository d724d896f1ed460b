// npm run bench: what a call costs, compared with others that do the same or less. bench/README.md says
// what is where; docs/benchmarks.md has the figures and how they were measured.
import { measureGrowth } from './growth/measure-growth.ts';
import { measureCalls } from './measure-calls.ts';
import { measureCollector } from './measure-collector.ts';
import { measureCompare } from './measure-compare.ts';
import { measureConnections } from './measure-connections.ts';
import { measureGuard } from './measure-guard.ts';
import { measureGuards } from './measure-guards.ts';
import { measureMemory } from './measure-memory.ts';
import { measureObserve } from './measure-observe.ts';
import { measureProfile } from './measure-profile.ts';
import { measureRelay } from './measure-relay.ts';
import { measureReplay } from './measure-replay.ts';
import { measureRules } from './measure-rules.ts';
import { measureSearch } from './measure-search.ts';
import { measureStart } from './measure-start.ts';
import { measureTokens } from './measure-tokens.ts';
import { HELP, type Options, readOptions } from './options.ts';
import { measureScaling } from './scaling/measure-scaling.ts';
import { closeTestbeds } from './testbed.ts';

const commands: Readonly<Record<string, (options: Options) => Promise<void>>> = {
  calls: measureCalls,
  compare: measureCompare,
  growth: measureGrowth,
  scaling: measureScaling,
  memory: measureMemory,
  connections: measureConnections,
  collector: measureCollector,
  relay: measureRelay,
  profile: measureProfile,
  start: measureStart,
  rules: measureRules,
  guard: measureGuard,
  guards: measureGuards,
  replay: measureReplay,
  search: measureSearch,
  tokens: measureTokens,
  observe: measureObserve,
};

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => void closeTestbeds().finally(() => process.exit(1)));
}

try {
  const options = readOptions(process.argv.slice(2));
  const run = commands[options?.command ?? ''];
  if (options === undefined || run === undefined) console.log(HELP);
  else await run(options);
} catch (error) {
  console.error(error);
  process.exitCode = 1;
}
