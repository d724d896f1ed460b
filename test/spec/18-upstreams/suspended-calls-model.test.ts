// Calls that wait for answers of their clients, in any order of what can happen to them: a model says what each client
// has to be told, and two replicas over one store have to tell it.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { JsonObject } from '../../../src/platform/json.ts';
import type { NextOutcome } from '../../../src/servers/relay/suspended/outcome-records.ts';
import { createKeptBytes } from '../../../src/servers/relay/suspended/outcome-records.ts';
import {
  createSuspendedCalls,
  type SuspendedCalls,
} from '../../../src/servers/relay/suspended/suspended-calls.ts';
import { openEmbeddedStore } from '../../../src/store/embedded/open.ts';
import { createSeal } from '../../../src/store/seal/seal.ts';
import type { Store } from '../../../src/store/store.ts';
import { type ManualClock, manualClock } from '../../support/gateway/clock.ts';
import { collectLog } from '../../support/gateway/log.ts';
import { openTestRuntime } from '../../support/gateway/runtime.ts';
import { useShared } from '../../support/lifetimes.ts';
import { createTemporaryFolder } from '../../support/temporary-folder.ts';
import { chooseCount } from '../../support/tools/long-run.ts';
import { formQuestion } from '../../support/upstreams/relay-server-1.ts';

const RUNS = chooseCount(12, 150);
const MAX_COMMANDS = 50;
/** So long a call waits for its client, and what it came to lies in the store. */
const KEPT_MS = 300_000;
/** After so long it is certain that a replica is gone. */
const GONE_MS = 8000;
const STEP_MS = 2000;
/** Calls of a user that may wait at one replica. */
const MAX_WAITING = 16;
const MEBIBYTE = 1_048_576;

const USERS = ['ada', 'bob', undefined] as const;
const PLACES = ['first', 'second'] as const;
type User = (typeof USERS)[number];
type Place = (typeof PLACES)[number];

/** What a client has to be told next. */
type State =
  /** It was asked this question, and has not come back. */
  | { readonly kind: 'asked'; readonly question: number; readonly until: number }
  /** All is answered: the server works, and the client waits there. */
  | { readonly kind: 'works'; readonly at: Place }
  /** The server answered before its client did; the result lies in the store. */
  | { readonly kind: 'kept'; readonly until: number }
  /** Its replica was stopped; that it was is told once at most. */
  | { readonly kind: 'stopped' }
  | { readonly kind: 'over' };

interface CallModel {
  readonly owner: User;
  readonly place: Place;
  /** How often the replica had been started. */
  readonly incarnation: number;
  readonly questions: number;
  /** Whether the server takes its time once all is answered. */
  readonly isSlow: boolean;
  state: State;
}

interface Model {
  readonly calls: CallModel[];
  readonly incarnations: Record<Place, number>;
}

interface RealCall {
  readonly started: ReturnType<SuspendedCalls['begin']>;
  readonly heard: unknown[];
  /** The server answers now, whatever it has asked. */
  finish(): void;
  readonly isCancelled: () => boolean;
  /** The client that waits for the server. */
  waiting?: { readonly told: Promise<Told>; readonly leaving: AbortController };
  /** How many clients were given the result. */
  results: number;
}

/** `left`: for a client that hung up; `waits`: nothing so far. */
type Told = NextOutcome | 'nothing' | 'left' | 'waits';

const parts = useShared(async () => {
  const folder = await createTemporaryFolder();
  const clock = manualClock();
  const { log } = collectLog();
  const opened = await openEmbeddedStore({
    dataDir: folder.path,
    sessionKeyPrefix: 'mcp:',
    clock,
    log,
  });
  const { store, settle } = watchStore(opened);
  const seal = createSeal(['a secret of more than thirty-two characters']);
  return {
    clock,
    store,
    settle,
    open: (keyPrefix: string): SuspendedCalls =>
      createSuspendedCalls(
        openTestRuntime({
          store,
          getSeal: async () => seal,
          clock,
          log,
          env: { MCP_SESSION_KEY_PREFIX: keyPrefix, MAX_UPSTREAM_BYTES: String(MEBIBYTE) },
        }),
      ),
    async close() {
      await opened.close();
      await folder.close();
    },
  };
});

/** `settle` resolves once nothing is under way, in the store or between the replicas. */
function watchStore(opened: Store) {
  let underWay = 0;
  const watch =
    <Parameters extends unknown[], Result>(work: (...parameters: Parameters) => Promise<Result>) =>
    async (...parameters: Parameters): Promise<Result> => {
      underWay += 1;
      try {
        return await work(...parameters);
      } finally {
        underWay -= 1;
      }
    };
  const store: Store = {
    ...opened,
    set: watch(opened.set),
    getAndDelete: watch(opened.getAndDelete),
    reserveBytes: watch(opened.reserveBytes),
    releaseBytes: watch(opened.releaseBytes),
    publish: watch(opened.publish),
  };
  return {
    store,
    async settle() {
      // A message is delivered in a turn of its own, and answered in another.
      for (let quiet = 0; quiet < 6; quiet = underWay === 0 ? quiet + 1 : 0) {
        await new Promise(setImmediate);
      }
    },
  };
}

let runs = 0;

/** Two replicas, and the servers behind them. */
class System {
  readonly calls: RealCall[] = [];
  readonly clock: ManualClock = parts.clock;
  readonly #prefix = `run-${++runs}:`;
  readonly #replicas: Record<Place, SuspendedCalls> = { first: this.#open(), second: this.#open() };

  #open(): SuspendedCalls {
    return parts.open(this.#prefix);
  }

  async begin(place: Place, { owner, questions, isSlow }: CallModel): Promise<Told> {
    const number = this.calls.length;
    const heard: unknown[] = [];
    let isCancelled = false;
    let letAnswer = () => {};
    const finished = new Promise<void>((resolve) => {
      letAnswer = resolve;
    });
    const { signal } = new AbortController();
    const started = this.#replicas[place].begin(
      {
        user: owner,
        server: 'one',
        params: {},
        capabilities: { elicitation: true, sampling: false, roots: false },
        async send({ signal: cancelled, answer }) {
          cancelled.addEventListener('abort', () => {
            isCancelled = true;
          });
          const askAll = async (): Promise<void> => {
            for (let question = 1; question <= questions; question += 1) {
              heard.push(await answer(toQuestion(number, question), cancelled));
            }
            if (isSlow) await finished;
          };
          await Promise.race([askAll(), finished]);
          return toResult(number, heard);
        },
      },
      { signal, progress() {}, log() {} },
    );
    this.calls.push({
      started,
      heard,
      finish: letAnswer,
      isCancelled: () => isCancelled,
      results: 0,
    });
    return this.hear(started.outcome);
  }

  /** Comes back with an answer to the question of that number, and resolves to what is told. */
  comeBack(call: number, place: Place, sub: User, question: number): Promise<Told> {
    const leaving = new AbortController();
    const real = this.get(call);
    const told = this.#replicas[place]
      .resume(
        {
          id: real.started.id,
          replica: real.started.replica,
          key: `question-${question}`,
          answer: toAnswer(question),
          user: sub,
          server: 'one',
        },
        { signal: leaving.signal, progress() {}, log() {} },
      )
      .then(
        (outcome): Told => {
          if (outcome?.kind === 'result') real.results += 1;
          return outcome ?? 'nothing';
        },
        (): Told => 'left',
      );
    real.waiting = { told, leaving };
    return told;
  }

  get(call: number): RealCall {
    const real = this.calls[call];
    if (real === undefined) throw new Error(`There is no call ${call}.`);
    return real;
  }

  settle(): Promise<void> {
    return parts.settle();
  }

  /** What a client has been told, now that nothing is under way. */
  async hear(told: Promise<Told> | undefined): Promise<Told> {
    await this.settle();
    const waits = new Promise<Told>((resolve) => {
      setImmediate(() => resolve('waits'));
    });
    return told === undefined ? waits : Promise.race([told, waits]);
  }

  /** In steps, between which replicas hear each other. */
  async pass(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= STEP_MS) {
      this.clock.advance(Math.min(left, STEP_MS));
      await this.settle();
    }
  }

  async restart(place: Place): Promise<void> {
    await this.#replicas[place].close();
    await this.settle();
    this.#replicas[place] = this.#open();
  }

  /** What is counted of this user, and of all, once nothing is kept: nothing. */
  async expectNothingCounted(): Promise<void> {
    const bytes = createKeptBytes(parts.store, this.#prefix, MEBIBYTE);
    for (const [sub, mebibytes] of [
      ['ada', 16],
      ['bob', 16],
      [undefined, 128],
    ] as const) {
      const all = { name: 'all that there is', bytes: mebibytes * MEBIBYTE };
      expect(await bytes.reserve(sub, all, 'any'), `room of ${sub}`).toBe(true);
      await bytes.release(sub, all);
    }
    for (const place of PLACES) {
      const model = { owner: 'ada', questions: 1, isSlow: false } as const;
      const beginOne = () =>
        this.begin(place, { ...model, place, incarnation: 0, state: { kind: 'over' } });
      const begun = await Promise.all(Array.from({ length: MAX_WAITING }, beginOne));
      expect(begun.map((told) => Object(told).kind)).toEqual(begun.map(() => 'question'));
      expect(await beginOne(), 'one more than a user may have').toMatchObject({ kind: 'failed' });
    }
  }

  async close(): Promise<void> {
    for (const place of PLACES) await this.#replicas[place].close();
    await this.settle();
  }
}

const toQuestion = (call: number, question: number) =>
  formQuestion(`Question ${question} of call ${call}?`);
const toAnswer = (question: number) => ({ action: 'accept', content: { answer: question } });
const toResult = (call: number, heard: readonly unknown[]): JsonObject => ({
  call,
  heard: [...heard],
});
const TOLD_TO_CALL_AGAIN = { kind: 'failed', failure: 'aborted' };

/** The calls that the model knows, by a number that may be beyond the last. */
function pick(
  { calls }: Model,
  number: number,
): { readonly index: number; readonly call: CallModel } {
  const index = number % calls.length;
  const call = calls[index];
  if (call === undefined) throw new Error('There is no call.');
  return { index, call };
}

const isHomeAlive = ({ incarnations }: Model, { place, incarnation }: CallModel) =>
  incarnations[place] === incarnation;

/** What time does to all that wait. */
function passInModel(model: Model, now: number): void {
  for (const call of model.calls) {
    const { state } = call;
    if ((state.kind === 'asked' || state.kind === 'kept') && state.until <= now) {
      call.state = { kind: 'over' };
    }
  }
}

type Command = fc.AsyncCommand<Model, System>;

const begin = (owner: User, place: Place, questions: number, isSlow: boolean): Command => ({
  check: ({ calls }) =>
    calls.filter((call) => call.owner === owner && call.state.kind !== 'over').length < MAX_WAITING,
  async run(model, system) {
    const state: State = { kind: 'asked', question: 1, until: system.clock.now() + KEPT_MS };
    const incarnation = model.incarnations[place];
    const call = { owner, place, incarnation, questions, isSlow, state };
    const index = model.calls.push(call) - 1;
    expect(await system.begin(place, call)).toEqual({
      kind: 'question',
      key: 'question-1',
      question: toQuestion(index, 1),
    });
  },
  toString: () => `${owner} calls at the ${place}: ${questions} questions${isSlow ? ', slow' : ''}`,
});

const hasCalls = ({ calls }: Readonly<Model>) => calls.length > 0;

const comeBack = (number: number, place: Place, answers: 'now' | 'before'): Command => ({
  check: hasCalls,
  async run(model, system) {
    const { index, call } = pick(model, number);
    const { state, owner } = call;
    const question = state.kind === 'asked' ? state.question : call.questions;
    const former = system.get(index).waiting;
    const told = system.comeBack(index, place, owner, answers === 'now' ? question : question - 1);
    await system.settle();
    const hear = () => system.hear(told);
    switch (state.kind) {
      case 'asked': {
        const next = answers === 'now' ? question + 1 : question;
        const until = system.clock.now() + KEPT_MS;
        if (next <= call.questions) {
          call.state = { kind: 'asked', question: next, until };
          const asked = { key: `question-${next}`, question: toQuestion(index, next) };
          expect(await hear()).toEqual({ kind: 'question', ...asked });
        } else if (call.isSlow) {
          call.state = { kind: 'works', at: place };
          expect(await hear()).toBe('waits');
        } else {
          call.state = { kind: 'over' };
          expect(await hear()).toEqual(resultOf(index, call, call.questions));
        }
        return;
      }
      case 'works':
        // The later one waits in place of the former.
        call.state = { kind: 'works', at: place };
        expect(await hear()).toBe('waits');
        expect([await system.hear(former?.told)]).toEqual([
          state.at === call.place ? expect.objectContaining(TOLD_TO_CALL_AGAIN) : 'nothing',
        ]);
        return;
      case 'kept':
        call.state = { kind: 'over' };
        expect(await hear()).toMatchObject({ kind: 'result', result: { call: index } });
        return;
      case 'stopped':
        if (!isHomeAlive(model, call)) await letTimePass(model, system);
        if ((await hear()) === 'nothing') return;
        call.state = { kind: 'over' };
        expect(await hear()).toMatchObject(TOLD_TO_CALL_AGAIN);
        return;
      case 'over':
        if (!isHomeAlive(model, call)) await letTimePass(model, system);
        expect(await hear()).toBe('nothing');
    }
  },
  toString: () => `${number}'s client comes to the ${place}, answering ${answers}`,
});

async function letTimePass(model: Model, system: System, ms = GONE_MS): Promise<void> {
  await system.pass(ms);
  passInModel(model, system.clock.now());
}

const resultOf = (index: number, { questions }: CallModel, answered: number) => ({
  kind: 'result',
  result: toResult(
    index,
    Array.from({ length: Math.min(questions, answered) }, (_, at) => toAnswer(at + 1)),
  ),
});

const answerTwiceAtOnce = (number: number): Command => ({
  check: hasCalls,
  async run(model, system) {
    const { index, call } = pick(model, number);
    const { state } = call;
    if (state.kind !== 'asked' || state.question < call.questions || call.isSlow) return;
    call.state = { kind: 'over' };
    const told = await Promise.all(
      PLACES.map((place) => system.hear(system.comeBack(index, place, call.owner, state.question))),
    );
    const results = told.filter((one) => typeof one === 'object' && one.kind === 'result');
    expect(results).toEqual([resultOf(index, call, call.questions)]);
  },
  toString: () => `${number}'s client answers at both replicas at once`,
});

const comeAsStranger = (number: number, place: Place, stranger: User): Command => ({
  check: hasCalls,
  async run(model, system) {
    const { index, call } = pick(model, number);
    if (call.owner === stranger) return;
    const { waiting } = system.get(index);
    const question = call.state.kind === 'asked' ? call.state.question : call.questions;
    const told = system.comeBack(index, place, stranger, question);
    if (waiting !== undefined) system.get(index).waiting = waiting;
    await system.settle();
    if (!isHomeAlive(model, call)) await letTimePass(model, system);
    expect(await system.hear(told)).toBe('nothing');
  },
  toString: () => `${stranger} comes to the ${place} with what ${number}'s client was given`,
});

const finish = (number: number): Command => ({
  check: hasCalls,
  async run(model, system) {
    const { index, call } = pick(model, number);
    const { state } = call;
    if (state.kind !== 'asked' && state.kind !== 'works') return;
    const real = system.get(index);
    real.finish();
    await system.settle();
    if (state.kind === 'asked') {
      call.state = { kind: 'kept', until: system.clock.now() + KEPT_MS };
    } else {
      call.state = { kind: 'over' };
      expect(await system.hear(real.waiting?.told)).toEqual(resultOf(index, call, call.questions));
    }
  },
  toString: () => `the server answers ${number}`,
});

const hangUp = (number: number): Command => ({
  check: hasCalls,
  async run(model, system) {
    const { index, call } = pick(model, number);
    if (call.state.kind === 'works') await leave(call, index, system);
  },
  toString: () => `${number}'s client hangs up`,
});

async function leave(call: CallModel, index: number, system: System): Promise<void> {
  const { waiting, isCancelled } = system.get(index);
  waiting?.leaving.abort();
  await system.settle();
  call.state = { kind: 'over' };
  expect(isCancelled()).toBe(true);
}

const pass = (ms: number): Command => ({
  check: () => true,
  async run(model, system) {
    await letTimePass(model, system, ms);
    for (const [index, { state }] of model.calls.entries()) {
      // What is abandoned is told to the server.
      if (state.kind === 'asked') expect(system.get(index).isCancelled()).toBe(false);
    }
  },
  toString: () => `${ms} ms pass`,
});

const restart = (place: Place): Command => ({
  check: () => true,
  async run(model, system) {
    const working = [...model.calls.entries()].filter(([, { state }]) => state.kind === 'works');
    for (const [index, call] of working) {
      // As the gateway does, which closes its connections before.
      const isElsewhere = call.state.kind === 'works' && call.state.at !== call.place;
      if (isElsewhere && call.place !== place) await leave(call, index, system);
    }
    await system.restart(place);
    for (const [index, call] of model.calls.entries()) {
      const { kind } = call.state;
      const isLost = call.place === place && (kind === 'asked' || kind === 'works');
      if (!isLost || !isHomeAlive(model, call)) continue;
      const real = system.get(index);
      expect(real.isCancelled()).toBe(true);
      call.state = { kind: 'stopped' };
      if (kind === 'asked') continue;
      const told = await system.hear(real.waiting?.told);
      if (told !== 'nothing') expect(told).toMatchObject(TOLD_TO_CALL_AGAIN);
    }
    model.incarnations[place] += 1;
  },
  toString: () => `the ${place} is restarted`,
});

const anyCall = fc.nat({ max: 30 });
const anyPlace = fc.constantFrom(...PLACES);
const anyUser = fc.constantFrom(...USERS);
const COMMANDS = [
  fc
    .tuple(anyUser, anyPlace, fc.integer({ min: 1, max: 2 }), fc.boolean())
    .map((of) => begin(...of)),
  fc
    .tuple(anyCall, anyPlace, fc.constantFrom('now' as const, 'now' as const, 'before' as const))
    .map((of) => comeBack(...of)),
  fc.tuple(anyCall, anyPlace).map((of) => comeBack(...of, 'now')),
  anyCall.map(answerTwiceAtOnce),
  fc.tuple(anyCall, anyPlace, anyUser).map((of) => comeAsStranger(...of)),
  anyCall.map(finish),
  anyCall.map(hangUp),
  // No sum of them is what calls are kept for.
  fc.constantFrom(1001, 70_003, 299_007).map(pass),
  anyPlace.map(restart),
];

test('§18.3 in any order of answers, hang-ups, restarts and time: each result is told once, to its owner, and nothing stays counted', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.commands(COMMANDS, { maxCommands: MAX_COMMANDS, size: 'max' }),
      async (commands) => {
        const system = new System();
        const model: Model = { calls: [], incarnations: { first: 1, second: 1 } };
        try {
          await fc.asyncModelRun(() => ({ model, real: system }), commands);
          await takeAll(model, system);
          await system.expectNothingCounted();
          for (const { results } of system.calls) expect(results).toBeLessThanOrEqual(1);
        } finally {
          await system.close();
        }
      },
    ),
    // As many as there is time for, on a machine that is busy with other tests, too.
    { numRuns: RUNS, interruptAfterTimeLimit: 120_000 },
  );
}, 600_000);

/** All clients come until nothing is left to be told. */
async function takeAll(model: Model, system: System): Promise<void> {
  for (let index = 0; index < model.calls.length; index += 1) {
    for (let round = 0; round < 5; round += 1) {
      const { kind } = model.calls[index]?.state ?? { kind: 'over' };
      if (kind === 'over') break;
      if (kind === 'works') await finish(index).run(model, system);
      else await comeBack(index, 'first', 'now').run(model, system);
    }
  }
}
