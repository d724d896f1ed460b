// §26.2: guards on servers' lists and instructions: each item is judged when it is first seen, and when it has changed.

import type { Guard, GuardPoint, Guards } from '../mcp/calls/guards.ts';
import type { RawItem } from '../mcp/catalog/catalog.ts';
import { LIST_KINDS, type ListKind } from '../mcp/protocol/list-kinds.ts';
import { createBoundedMap } from '../platform/bounded-map.ts';
import { type Clock, createTurns } from '../platform/clock.ts';
import { writeExactJson } from '../platform/exact-json.ts';
import { hashSha256 } from '../platform/ids.ts';
import { isObject, type JsonObject } from '../platform/json.ts';
import { readExact, toNoted } from '../platform/noted-json.ts';
import { findItemProblem, fitItem } from './check-item.ts';
import type { FetchedList } from './fetch-list.ts';

/** The verdicts of the guards of one configuration. */
export type ListGuards = ReturnType<typeof createListGuards>;

export interface JudgedKind {
  /** `''` for the built-in catalogue. */
  readonly server: string;
  readonly kind: ListKind;
  /** The name that clients of `/mcp` see for the server's own name. */
  join(ownName: string): string;
}

interface JudgedList extends JudgedKind {
  readonly items: readonly RawItem[];
}

export interface ListJudgement {
  readonly digest: string;
  /** True if a guard failed; it is asked again soon. */
  readonly hasFailed: boolean;
}

type ListedVerdict =
  | { readonly kind: 'listed'; readonly item: RawItem }
  /** Continues a sentence that begins with the item's name. */
  | { readonly kind: 'hidden'; readonly reason: string };

/** Maximum number of items that are judged concurrently. */
const AT_ONCE = 16;

interface Known extends ListJudgement {
  readonly verdict: ListedVerdict;
}

export function createListGuards(guards: Guards, clock: Clock) {
  /** Keyed by the judged value: an item that is listed again unchanged is not judged again. */
  const remembered = createBoundedMap<string, Known>('guardedTexts');
  const ofItems = new WeakMap<RawItem, Known>();
  const instructions = createBoundedMap<string, { readonly text: string | undefined }>(
    'guardedTexts',
  );

  const findGuard = ({ server, kind, join }: JudgedKind, item: RawItem) => {
    const { ruled, key } = LIST_KINDS[kind];
    const ownName = String(item[key]);
    return guards.find(LIST_POINTS[kind], { kind: ruled, name: join(ownName), server });
  };

  async function judgeItem(list: JudgedList, item: RawItem): Promise<Known | undefined> {
    const guard = findGuard(list, item);
    // Items that clients cannot use are hidden anyway.
    if (guard === undefined) return undefined;
    const { item: fitting, problem } = fitItem(list.kind, item);
    if (problem !== undefined) return undefined;
    const exact = readExact(fitting);
    const key = hashSha256(writeExactJson([list.server, list.kind, exact]));
    const known = remembered.get(key) ?? (await ask(list.kind, fitting, exact, guard));
    if (!known.hasFailed) remembered.set(key, known);
    ofItems.set(item, known);
    return known;
  }

  return {
    /**
     * Judges each item that has not been judged yet. Never rejects. Two lists with the same verdicts have the same `digest`; it
     * is `''` if no guard checks lists.
     */
    async judge(list: JudgedList): Promise<ListJudgement> {
      const { kind, items } = list;
      if (!guards.looksAt(LIST_POINTS[kind])) return NOTHING_SAID;
      const work = createTurns(clock);
      const said: (Known | undefined)[] = [];
      for (let at = 0; at < items.length; at += AT_ONCE) {
        const asked: Promise<Known | undefined>[] = [];
        for (const item of items.slice(at, at + AT_ONCE)) {
          asked.push(judgeItem(list, item));
          if (work.isOver()) await work.next();
        }
        said.push(...(await Promise.all(asked)));
      }
      return {
        digest: hashSha256(said.map((one) => one?.digest ?? '').join(' ')),
        hasFailed: said.some((one) => one?.hasFailed === true),
      };
    },
    /** Undefined if no guard checks the item. An item that has not been judged yet is hidden. */
    peek(list: JudgedKind, item: RawItem): ListedVerdict | undefined {
      if (findGuard(list, item) === undefined) return undefined;
      return ofItems.get(item)?.verdict ?? NOT_YET;
    },
    /** The text as changed by the guard; undefined if the guard refuses it. */
    async passInstructions(server: string, text: string): Promise<string | undefined> {
      const guard = guards.find('instructions', { kind: undefined, name: '', server });
      if (guard === undefined) return text;
      const key = hashSha256(JSON.stringify([server, text]));
      const known = instructions.get(key);
      if (known !== undefined) return known.text;
      const findProblem = (changed: unknown) =>
        typeof changed === 'string' ? undefined : 'it must be a text';
      const verdict = await guard.judge({ value: text, caller: undefined, findProblem });
      const passed =
        verdict.kind === 'refused'
          ? undefined
          : verdict.kind === 'changed'
            ? String(verdict.value)
            : text;
      if (verdict.hasFailed !== true) instructions.set(key, { text: passed });
      return passed;
    },
  };
}

const LIST_POINTS = {
  tools: 'tools/list',
  prompts: 'prompts/list',
  resources: 'resources/list',
  templates: 'resources/list',
  skills: 'skills/list',
} as const satisfies Readonly<Record<ListKind, GuardPoint>>;

/** Time after which a guard that failed is asked again. */
const UNSURE_TTL_MS = 5_000;

/** A list with other verdicts counts as another list, so clients are notified. */
export const addJudgement = (
  list: FetchedList,
  judgement: ListJudgement | undefined,
): FetchedList =>
  judgement === undefined || judgement.digest === ''
    ? list
    : {
        ...list,
        fingerprint: `${list.fingerprint}${judgement.digest}`,
        ttlMs: judgement.hasFailed ? Math.min(list.ttlMs, UNSURE_TTL_MS) : list.ttlMs,
      };

/** The judgement for a configuration in which no guard checks lists. */
export const NOTHING_SAID: ListJudgement = { digest: '', hasFailed: false };

const NOT_YET: ListedVerdict = {
  kind: 'hidden',
  reason: 'is hidden until its guards have looked at it',
};

/** `exact` is the item with numbers as its server wrote them. */
async function ask(kind: ListKind, item: RawItem, exact: JsonObject, guard: Guard): Promise<Known> {
  const { key } = LIST_KINDS[kind];
  const verdict = await guard.judge({
    value: exact,
    caller: undefined,
    findProblem(changed) {
      if (!isObject(changed)) return 'it must be an object';
      // Calls use the key, so a guard must not change it.
      if (changed[key] !== item[key]) return `its ${key} is another`;
      return findItemProblem(kind, changed);
    },
  });
  const hasFailed = verdict.hasFailed === true;
  const hide = (reason: string): Known => ({
    verdict: { kind: 'hidden', reason },
    digest: 'r',
    hasFailed,
  });
  if (verdict.kind === 'refused')
    return hide(`is hidden by the guard ${verdict.by}: ${verdict.message}`);
  if (verdict.kind === 'passed')
    return { verdict: { kind: 'listed', item }, digest: 'p', hasFailed };
  if (kind === 'skills')
    return hide(
      'is hidden: a guard would change it, and clients load no skill that differs from its SKILL.md',
    );
  const told = isObject(verdict.value) ? verdict.value : exact;
  const digest = hashSha256(writeExactJson(told));
  return { verdict: { kind: 'listed', item: toNoted(told) }, digest, hasFailed };
}
