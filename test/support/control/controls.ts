// What may hold back what clients and servers say to one another, each so that nothing may pass.
import { createLock } from '../../../src/lock/lock.ts';
import type { Lock } from '../../../src/mcp/catalog/approved-items.ts';
import { ALL_POINTS } from '../guards/module-guard.ts';
import type { Way, WayKind } from './ways.ts';

/** What holds something back. */
export interface Control {
  readonly title: string;
  /** Members of the configuration file. */
  readonly file?: object;
  readonly lock?: Lock;
  readonly guard?: { readonly on: readonly string[]; readonly body?: string };
  /** What the client answers when it is asked. */
  readonly answer?: object;
  /** It looks at what servers say alone: they hear all the same. */
  readonly isOfAnswers?: boolean;
  /** In place of `/mcp`, and of the view that is searched. */
  readonly paths?: readonly [all: string, searched: string];
  /** What it holds back: the rest passes, and that is meant. */
  holds(way: Way): boolean;
}

const EVERYTHING = ['*', 'prompt:*', 'resource:*'];
const NOBODY = { groups: ['nobody'] };
const NOTHING = { tools: [], prompts: [], resources: [] };

/** Those that are searched have no tool listed beside the search. */
export const VIEWS = {
  searched: { search: true },
  empty: NOTHING,
  'empty-searched': { ...NOTHING, search: true },
  other: { servers: ['quiet'] },
  'other-searched': { servers: ['quiet'], search: true },
};

const REQUESTS: readonly string[] = [
  'tools/call',
  'prompts/get',
  'resources/read',
  'resources/subscribe',
  'completion/complete',
];

const NO_LISTS: readonly string[] = ALL_POINTS.filter((point) => !point.endsWith('/list'));

/** Lists that search_tools tells are results. */
const isNoList = ({ kind, isSearched }: Way) =>
  isSearched || (kind !== 'lists' && kind !== 'lists of resources');

const asking = (ask: string) => [
  { who: 'everyone', may: EVERYTHING },
  { who: 'everyone', may: ['*'], ask },
];

const isOneOf =
  (...kinds: readonly WayKind[]) =>
  ({ kind }: Way) =>
    kinds.includes(kind);

export const CONTROLS: readonly Control[] = [
  { title: 'nothing', holds: () => false },
  {
    title: 'rules that allow nobody anything',
    file: { rules: [{ who: NOBODY, may: EVERYTHING }] },
    // What an author says of the gateway itself is for everybody.
    holds: ({ kind }) => kind !== 'instructions',
  },
  {
    title: 'rules that look at arguments, which nobody has',
    file: {
      rules: [{ when: "args.said == 'something else' && args.a == 'b'", may: EVERYTHING }],
    },
    // In lists, what depends on arguments is there, and so are values for these arguments.
    holds: isOneOf('tools', 'prompts', 'resources', 'lists of resources'),
  },
  {
    title: 'a view without anything',
    paths: ['/mcp/empty', '/mcp/empty-searched'],
    // What an author says of the gateway itself is for everybody.
    holds: ({ kind }) => kind !== 'instructions',
  },
  {
    title: 'a view of another server',
    paths: ['/mcp/other', '/mcp/other-searched'],
    holds: () => true,
  },
  { title: 'a guard that refuses all', guard: { on: ALL_POINTS }, holds: () => true },
  {
    title: 'a guard that fails at all',
    guard: { on: ALL_POINTS, body: "throw new Error('No.');" },
    holds: () => true,
  },
  {
    title: 'a guard that refuses requests',
    guard: { on: REQUESTS },
    holds: isOneOf('tools', 'prompts', 'completions of prompts', 'resources'),
  },
  {
    title: 'a guard that refuses what servers say',
    // What is in no list is unknown: the calls themselves are looked at where the lists are not.
    guard: { on: NO_LISTS.filter((point) => !REQUESTS.includes(point)) },
    isOfAnswers: true,
    holds: isNoList,
  },
  { title: 'a guard that refuses all but lists', guard: { on: NO_LISTS }, holds: isNoList },
  {
    title: 'a user who declines',
    file: { rules: asking('user') },
    answer: { action: 'decline' },
    holds: isOneOf('tools'),
  },
  {
    title: 'a user who accepts without saying what',
    file: { rules: asking('user') },
    answer: { action: 'accept', content: { name: 'once' } },
    holds: isOneOf('tools'),
  },
  {
    title: 'a guard that refuses in place of operators',
    file: { rules: asking('operator') },
    guard: { on: ['approval'] },
    holds: isOneOf('tools'),
  },
  {
    title: 'a lock that approves nothing',
    lock: createLock({ servers: new Map() }),
    // It is about servers, and not about their resources.
    holds: ({ kind, server }) =>
      server !== 'own' &&
      server !== '' &&
      (kind === 'tools' || kind === 'prompts' || kind === 'completions of prompts'),
  },
];
