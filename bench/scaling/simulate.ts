// A simulation of n processes of the gateway and one Redis: every turn of every event loop, every script,
// every call. It is deterministic: the same costs give the same figures.
import { randomOf } from '../../test/support/fuzz/seeded-random.ts';
import type { BatchCost } from './model.ts';

export interface SimulationOptions {
  readonly processes: number;
  /** Of clients, at each process; each sends its next call when it has its answer. */
  readonly connections: number;
  /** CPU of a turn of the event loop that brings calls, and of each call in it, half of it before Redis. */
  readonly gateway: BatchCost;
  readonly redis: BatchCost;
  /** Of the calls, how many Redis is asked about: the others a process can answer by itself. All unless given. */
  readonly askedShare?: number;
  /** Microseconds that a message needs from one machine to the other. */
  readonly networkMicroseconds: number;
  /** Scripts of one process that Redis has not answered yet; further calls wait, and share the next one. */
  readonly maxScripts: number;
}

export interface SimulationResult {
  readonly requestsPerSecond: number;
  /** Calls in each script. */
  readonly batch: number;
  /** Of its core. */
  readonly redisShare: number;
  /** Of theirs. */
  readonly gatewayShare: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** The most calls of a script (src/store/redis/open.ts). */
const MAX_BATCH = 64;
/** Microseconds of simulated time; the first part only fills the queues. */
const WARM_UP = 100_000;
const END = 600_000;
/** How much longer or shorter a call may take than the mean: without it all loops would march in step. */
const JITTER = 0.5;

interface Call {
  readonly sentAt: number;
}

interface Process {
  /** What waits for its next turn. */
  calls: Call[];
  answers: Call[];
  isBusy: boolean;
  /** Judged, and not yet sent to Redis. */
  pending: Call[];
  scripts: number;
}

interface Script {
  readonly process: Process;
  readonly calls: readonly Call[];
}

export function simulate(options: SimulationOptions): SimulationResult {
  const { gateway, redis, networkMicroseconds: network, askedShare = 1 } = options;
  const random = randomOf(1, options.processes * 1000 + options.connections);
  const vary = (mean: number) => mean * (1 + JITTER * (2 * random() - 1));
  const events = createEventQueue();
  const processes: Process[] = Array.from({ length: options.processes }, () => ({
    calls: [],
    answers: [],
    isBusy: false,
    pending: [],
    scripts: 0,
  }));
  const scripts: Script[] = [];
  let isRedisBusy = false;
  let redisTime = 0;
  let gatewayTime = 0;
  let scriptCount = 0;
  let callCount = 0;
  const latencies: number[] = [];

  const send = (process: Process, at: number) =>
    events.add(at + network, (now) => {
      process.calls.push({ sentAt: at });
      if (!process.isBusy) turn(process, now);
    });

  /** One turn: all that has come, and scripts for the calls among it that Redis is asked about. */
  function turn(process: Process, now: number): void {
    const { answers } = process;
    const { calls } = process;
    if (calls.length + answers.length === 0) return;
    process.calls = [];
    process.answers = [];
    process.isBusy = true;
    const asked = calls.filter(() => askedShare === 1 || random() < askedShare);
    const answered = calls.filter((call) => !asked.includes(call));
    const whole = answered.length + (asked.length + answers.length) / 2;
    const fixed = calls.length > 0 ? gateway.fixed : 0;
    const duration = vary(fixed + gateway.each * whole);
    if (now > WARM_UP) gatewayTime += duration;
    events.add(now + duration, (end) => {
      process.isBusy = false;
      process.pending.push(...asked);
      sendScripts(process, end);
      for (const { sentAt } of [...answers, ...answered]) finish(process, sentAt, end);
      turn(process, end);
    });
  }

  function sendScripts(process: Process, now: number): void {
    while (process.pending.length > 0 && process.scripts < options.maxScripts) {
      const calls = process.pending.splice(0, MAX_BATCH);
      process.scripts += 1;
      events.add(now + network, (at) => receive({ process, calls }, at));
    }
  }

  function finish(process: Process, sentAt: number, end: number): void {
    const at = end + network;
    if (at > WARM_UP) {
      latencies.push(at - sentAt);
      callCount += 1;
    }
    send(process, at);
  }

  function receive(script: Script, now: number): void {
    scripts.push(script);
    if (!isRedisBusy) runNextScript(now);
  }

  /** Redis runs one script after the other. */
  function runNextScript(now: number): void {
    const script = scripts.shift();
    isRedisBusy = script !== undefined;
    if (script === undefined) return;
    const { process, calls } = script;
    const duration = redis.fixed + redis.each * calls.length;
    if (now > WARM_UP) {
      redisTime += duration;
      scriptCount += 1;
    }
    events.add(now + duration, (end) => {
      events.add(end + network, (at) => {
        process.scripts -= 1;
        process.answers.push(...calls);
        sendScripts(process, at);
        if (!process.isBusy) turn(process, at);
      });
      runNextScript(end);
    });
  }

  for (const process of processes) {
    for (let n = 0; n < options.connections; n++) send(process, vary(500));
  }
  events.runUntil(END);

  const elapsed = END - WARM_UP;
  latencies.sort((a, b) => a - b);
  const percentile = (share: number) =>
    (latencies[Math.floor(share * latencies.length)] ?? Number.NaN) / 1000;
  return {
    requestsPerSecond: (callCount / elapsed) * 1e6,
    batch: callCount / scriptCount,
    redisShare: redisTime / elapsed,
    gatewayShare: gatewayTime / elapsed / options.processes,
    p50Ms: percentile(0.5),
    p99Ms: percentile(0.99),
  };
}

type Task = (now: number) => void;

/** What is to happen, in the order of time: a binary heap. */
function createEventQueue() {
  const times: number[] = [];
  const tasks: Task[] = [];

  function swap(a: number, b: number): void {
    [times[a], times[b]] = [times[b] ?? 0, times[a] ?? 0];
    const task = tasks[a];
    const other = tasks[b];
    if (task === undefined || other === undefined) return;
    tasks[a] = other;
    tasks[b] = task;
  }

  const isEarlier = (a: number, b: number): boolean =>
    b >= times.length ? a < times.length : (times[a] ?? Infinity) < (times[b] ?? Infinity);

  function takeFirst(): Task | undefined {
    swap(0, times.length - 1);
    times.pop();
    const task = tasks.pop();
    for (let at = 0; ; ) {
      const child = isEarlier(2 * at + 1, 2 * at + 2) ? 2 * at + 1 : 2 * at + 2;
      if (child >= times.length || !isEarlier(child, at)) return task;
      swap(at, child);
      at = child;
    }
  }

  return {
    add(time: number, task: Task): void {
      times.push(time);
      tasks.push(task);
      for (let at = times.length - 1; at > 0; ) {
        const parent = (at - 1) >> 1;
        if (!isEarlier(at, parent)) break;
        swap(at, parent);
        at = parent;
      }
    },
    runUntil(end: number): void {
      for (let time = times[0]; time !== undefined && time <= end; time = times[0]) {
        takeFirst()?.(time);
      }
    },
  };
}
