// Takes one walk: warm-up calls, counted calls, and one call that gives the order of its functions.
import { readFileSync } from 'node:fs';
import { sortByFirstCall, type WalkedFunction } from './call-order.ts';
import { type CountedFunction, intersect, openFunctionCounter } from './count-functions.ts';
import { type Arrow, findArrows, findRoom } from './find-arrows.ts';
import type { Stage } from './gateways.ts';
import type { Walk } from './walks.ts';

export interface WalkResult {
  readonly walk: Walk;
  readonly functionCount: number;
  readonly fileCount: number;
  /** Types that these files export. */
  readonly typeCount: number;
  /** In the order a call first reaches them. */
  readonly rooms: readonly Room[];
  readonly arrows: readonly Arrow[];
}

export interface Room {
  /** Its folder, below src. */
  readonly name: string;
  readonly files: readonly WalkedFile[];
}

export interface WalkedFile {
  readonly name: string;
  readonly functions: readonly WalkedFunction[];
}

/** Until all that is done late was done. */
const WARM_CALLS = 200;

/** Work that only some of them do, such as to begin the count of a new second, is not part of a warm call. */
const COUNTED_CALLS = 5;

/** @throws Error for a call that does not succeed. */
export async function takeWalk(walk: Walk): Promise<WalkResult> {
  const counter = await openFunctionCounter();
  const stage = await walk.start();
  try {
    for (let call = 0; call < WARM_CALLS; call += 1) await (await prepareCall(walk, stage))();
    const counts: (readonly CountedFunction[])[] = [];
    for (let call = 0; call < COUNTED_CALLS; call += 1) {
      // The process is busy: it has just answered another call.
      await (await prepareCall(walk, stage))();
      const run = await prepareCall(walk, stage);
      counts.push(await stage.clock.holdTimers(() => counter.count(run)));
    }
    const lastRun = await prepareCall(walk, stage);
    const functions = await stage.clock.holdTimers(() =>
      sortByFirstCall(counter.session, intersect(counts), lastRun),
    );
    const files = groupBy(functions, ({ file }) => file);
    const rooms = groupBy([...files.keys()], findRoom);
    return {
      walk,
      functionCount: functions.length,
      fileCount: files.size,
      typeCount: [...files.keys()].reduce((total, file) => total + countTypes(file), 0),
      rooms: [...rooms].map(([name, names]) => ({
        name,
        files: names.map((file) => ({ name: file, functions: files.get(file) ?? [] })),
      })),
      arrows: await findArrows([...files.keys()]),
    };
  } finally {
    await counter.close();
    await stage.close();
  }
}

const countTypes = (file: string): number =>
  readFileSync(new URL(`../../src/${file}`, import.meta.url), 'utf8').match(EXPORTED_TYPE)
    ?.length ?? 0;

const EXPORTED_TYPE = /^export (type|interface) \w/gm;

async function prepareCall(walk: Walk, stage: Stage): Promise<() => Promise<void>> {
  const call = await stage.prepare();
  return async () => {
    const { status, text } = await call();
    if (status !== 200 || /"error":|"isError":true/.test(text)) {
      throw new Error(`${walk.name} was answered ${status}: ${text}`);
    }
  };
}

function groupBy<Item>(
  items: readonly Item[],
  getKey: (item: Item) => string,
): ReadonlyMap<string, readonly Item[]> {
  const groups = new Map<string, Item[]>();
  for (const item of items) {
    const group = groups.get(getKey(item));
    if (group === undefined) groups.set(getKey(item), [item]);
    else group.push(item);
  }
  return groups;
}
