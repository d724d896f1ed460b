// The configuration file is written again and again while clients of both eras call tools: no call fails whose tool both
// the old file and the new one offer.
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { statelessRequest } from '../support/clients/stateless.ts';
import {
  endPosterns,
  makeFolder,
  type RunningPostern,
  startPostern,
} from '../support/gateway/process.ts';
import { openSession, rpc } from '../support/gateway/process-http.ts';
import { closeAfterTest } from '../support/lifetimes.ts';
import { startRelayServer1 } from '../support/upstreams/relay-server-1.ts';
import { startRelayServer2 } from '../support/upstreams/relay-server-2.ts';
import { supportFile } from '../support/upstreams/stdio-calls.ts';

const LONG = { timeout: 240_000 } as const;
const PATIENT = { timeout: 30_000 };
const CALLERS_OF_AN_ERA = 4;
const IN_A_ROW = 8;
const NO_LIMITS = { MCP_RATE_LIMIT_MAX: '1000000', MCP_GLOBAL_RATE_LIMIT_MAX: '1000000' };

afterEach(endPosterns);

/** One of the files, and which tools it offers. */
interface Version {
  readonly what: string;
  readonly text: string;
  readonly offers: readonly string[];
  /** What the log says once it was read. */
  readonly says?: string;
}

const LOADED = 'Reloaded the configuration file.';
const REFUSED = 'The configuration file has problems';

interface Urls {
  readonly sessions: string;
  readonly stateless: string;
  readonly extra: string;
}

const PROGRAM = { command: process.execPath, args: [supportFile('scripted-server.mjs')] };
const THREE = ['sessions__say', 'stateless__say', 'program__echo'];

function writeVersions({ sessions, stateless, extra }: Urls): readonly Version[] {
  const all = { sessions: { url: sessions }, stateless: { url: stateless }, program: PROGRAM };
  const version = (what: string, servers: object, offers: readonly string[], rest?: object) => ({
    what,
    text: JSON.stringify({ mcpServers: servers, ...rest }),
    offers,
  });
  const withExtra = { ...all, extra: { url: extra } };
  const renamed = {
    ...withExtra,
    program: { ...PROGRAM, prefix: 'mine' },
    stateless: { url: stateless, prefix: 'less' },
  };
  const renamedOffers = ['sessions__say', 'less__say', 'mine__echo', 'extra__say'];
  const rules = { rules: [{ who: 'everyone', may: ['sessions__*', 'less__*', 'extra__*'] }] };
  const ruled = version('a rule', renamed, ['sessions__say', 'less__say', 'extra__say'], rules);
  return [
    version('the first file', all, THREE),
    version('one server more', withExtra, [...THREE, 'extra__say']),
    version('other prefixes', renamed, renamedOffers),
    ruled,
    {
      ...ruled,
      what: 'a broken file',
      text: '{ "mcpServers": { "sessions": { "urll"',
      says: REFUSED,
    },
    { ...ruled, what: 'the same file as before' },
    version('no rule', renamed, renamedOffers, { rules: 'everyone' }),
    version('the former prefixes', withExtra, [...THREE, 'extra__say']),
    version('one server less', all, THREE),
    writeAnew({ sessions, stateless }, 'new'),
    version('the first file again', all, THREE),
    version('no program', { sessions: all.sessions, stateless: all.stateless }, THREE.slice(0, 2)),
    version('the first file at last', all, THREE),
  ];
}

/** The same tools by another process and other connections. */
const writeAnew = ({ sessions, stateless }: Omit<Urls, 'extra'>, value: string): Version => ({
  what: 'another process and other connections',
  text: JSON.stringify({
    mcpServers: {
      sessions: { url: sessions, headers: { 'x-new': value } },
      stateless: { url: stateless, headers: { 'x-new': value } },
      program: { ...PROGRAM, env: { NEW: value } },
    },
  }),
  offers: THREE,
});

/** What calls a tool, and resolves to what is wrong with the answer. */
type CallTool = (name: string, word: string) => Promise<string | undefined>;

const toArguments = (name: string, word: string) =>
  name.endsWith('echo') ? { value: word } : { word, turns: 2 };

async function createSessionCaller({ url }: RunningPostern): Promise<CallTool> {
  const session = await openSession(url);
  return async (name, word) => {
    const params = { name, arguments: toArguments(name, word) };
    const message = { jsonrpc: '2.0', id: word, method: 'tools/call', params };
    return check(word, await rpc(url, message, { session }));
  };
}

async function createStatelessCaller({ url }: RunningPostern): Promise<CallTool> {
  return async (name, word) => {
    const params = { name, arguments: toArguments(name, word) };
    const { message, headers } = statelessRequest('tools/call', params, { id: word });
    const answer = await fetch(`${url}/mcp`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(message),
    });
    return check(word, answer);
  };
}

async function check(word: string, answer: Response): Promise<string | undefined> {
  const text = await answer.text();
  // A busy machine: the gateway says so, and whoever called calls again.
  if (answer.status === 503) return undefined;
  const { id, result } = JSON.parse(text);
  const isRight = id === word && result?.content?.[0]?.text === word && !result.isError;
  return isRight ? undefined : `${answer.status} ${text}`;
}

test(
  '§18.1 changes: while the file is written again and again, no call fails whose tool old and new file offer',
  LONG,
  async () => {
    const sessions = closeAfterTest(await startRelayServer1());
    const stateless = closeAfterTest(await startRelayServer2());
    const extra = closeAfterTest(await startRelayServer1());
    const urls = { sessions: sessions.url, stateless: stateless.url, extra: extra.url };
    const versions = writeVersions(urls);
    const path = join(await makeFolder(), 'mcp.json');
    const [first] = versions;
    if (first === undefined) throw new Error('there is a first file');
    await writeFile(path, first.text);
    const postern = await startPostern(
      { AUTH_REQUIRED: 'false', ...NO_LIMITS },
      { args: ['start', '--config', path] },
    );

    /** Tools that may be called now: those of the present file and of the next one. */
    let callable = first.offers;
    let now = first.what;
    let isOver = false;
    const wrong: string[] = [];
    const done = new Map<string, number>();
    const lastTold: number[] = [];

    async function callUntilOver(callTool: CallTool, caller: number): Promise<void> {
      for (let n = 0; !isOver && wrong.length < 5; n += 1) {
        const name = callable[n % callable.length] ?? '';
        const problem = await callTool(name, `${caller}/${n}`).catch((error: unknown) =>
          String(error),
        );
        if (problem !== undefined) wrong.push(`${now}: ${name}: ${problem}`);
        done.set(name, (done.get(name) ?? 0) + 1);
        lastTold[caller] = (lastTold[caller] ?? 0) + 1;
      }
    }

    /** Each caller has begun, and ended, a call since then. */
    async function untilAllCalledAgain(): Promise<void> {
      const before = [...lastTold];
      await expect
        .poll(() => lastTold.every((calls, caller) => calls >= (before[caller] ?? 0) + 2), PATIENT)
        .toBe(true);
    }

    async function untilAllAnswer(names: readonly string[]): Promise<void> {
      const before = new Map(done);
      const hasAnswered = (name: string) => (done.get(name) ?? 0) > (before.get(name) ?? 0) + 4;
      const problemsOrMissing = () =>
        wrong.length > 0 ? wrong : names.filter((name) => !hasAnswered(name));
      await expect.poll(problemsOrMissing, PATIENT).toEqual([]);
    }

    const countLines = (start: string) =>
      postern.log().filter(({ msg }) => msg.startsWith(start)).length;

    async function load({ text, says = LOADED }: Version): Promise<void> {
      const before = countLines(says);
      await writeFile(path, text);
      postern.kill('SIGHUP');
      await expect.poll(() => countLines(says), PATIENT).toBeGreaterThan(before);
    }

    const callers = [
      ...(await Promise.all(
        Array.from({ length: CALLERS_OF_AN_ERA }, () => createSessionCaller(postern)),
      )),
      ...(await Promise.all(
        Array.from({ length: CALLERS_OF_AN_ERA }, () => createStatelessCaller(postern)),
      )),
    ];
    for (const caller of callers.keys()) lastTold[caller] = 0;
    const calling = callers.map(callUntilOver);
    await untilAllAnswer(first.offers);
    let underWay: Promise<string> | undefined;
    for (const [at, next] of versions.entries()) {
      if (at === 0) continue;
      const present = versions[at - 1]?.offers ?? [];
      callable = present.filter((name) => next.offers.includes(name));
      now = next.what;
      await untilAllCalledAgain();
      if (next.what === 'one server less') underWay = startCall();
      if (underWay) await once(extra.events, 'waiting');
      await load(next);
      callable = next.offers;
      await untilAllAnswer(next.offers);
      if (underWay) {
        // Its server is no longer in the file.
        extra.events.emit('step');
        expect(await underWay).toContain('waited');
        underWay = undefined;
      }
      expect(wrong).toEqual([]);
    }
    // One after the other: servers go that have not begun yet, while calls wait for them.
    for (let n = 0; n < IN_A_ROW; n += 1) {
      now = `change ${n} in a row`;
      await load(writeAnew(urls, String(n)));
    }
    await untilAllAnswer(first.offers);
    isOver = true;
    await Promise.all(calling);
    expect(wrong).toEqual([]);

    async function startCall(): Promise<string> {
      const { message, headers } = statelessRequest('tools/call', { name: 'extra__wait' });
      const answer = await fetch(`${postern.url}/mcp`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify(message),
      });
      return answer.text();
    }
  },
);
