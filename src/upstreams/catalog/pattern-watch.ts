// §18.9: tells when a pattern of the configuration file that is served fits nothing any more.
import { isDeepStrictEqual } from 'node:util';
import { LISTING_CONTEXT } from '../../mcp/catalog/own-catalog.ts';
import type { Log } from '../../platform/log.ts';
import type { ListKind } from '../../protocol/list-kinds.ts';
import { type BuiltIn, isFixed } from './built-in.ts';
import {
  createFindIdlePatterns,
  type FindIdlePatterns,
  type IdlePattern,
  type PatternsFile,
} from './idle-patterns.ts';
import type { Plan } from './plan.ts';

export interface PatternWatch {
  /** Another configuration is served. */
  restart(): void;
  /** A list is another than before. What is new is logged: each pattern once, as long as the configuration is the same. */
  noteList(kind: ListKind): void;
  /** By the lists at hand; of the configuration that is served, unless another is given. */
  findIdle(file?: PatternsFile): readonly IdlePattern[];
}

/** Those that patterns are about. */
const KINDS = ['tools', 'prompts'] as const;
/** Where each user has lists: those of the users who were there last. */
const MAX_LISTS = 100;

export function createPatternWatch(
  getPlan: () => Plan,
  { builtIn, log }: { readonly builtIn: BuiltIn; readonly log: Log },
): PatternWatch {
  let find: FindIdlePatterns = () => [];
  let watched: PatternsFile | undefined;
  let said = new Set<string>();

  const listKept = (name: string) => getPlan().servers.get(name)?.server.lists.listKept() ?? [];

  const findBy = (findIdle: FindIdlePatterns, hasBuiltIn: boolean) =>
    findIdle({
      findLists: (name, kind) =>
        listKept(name)
          .flatMap((kept) => (kept.kind === kind ? [kept.items] : []))
          .slice(-MAX_LISTS),
      findBuiltIn: (kind) =>
        hasBuiltIn ? builtIn.fixed.get(kind)?.entries.map(({ name }) => name) : [],
    });

  const findServed = () => findBy(find, getPlan().setup.file.builtIn);

  function look(): void {
    for (const { of, subject, message } of findServed()) {
      if (said.has(message)) continue;
      said.add(message);
      log.warn(message, { [of]: subject });
    }
  }

  /** Where it is not the same for everybody, nobody knows what it will list. */
  async function askBuiltIn(): Promise<void> {
    for (const kind of KINDS) {
      if (isFixed(builtIn.catalog, kind)) await builtIn.list(kind, LISTING_CONTEXT);
    }
  }

  async function start(): Promise<void> {
    await askBuiltIn().catch(() => {});
    look();
  }

  return {
    restart() {
      const { file } = getPlan().setup;
      find = createFindIdlePatterns(file);
      // An operator who approves what a server says has the same file loaded with another lock.
      if (!isDeepStrictEqual(file, watched)) said = new Set();
      watched = file;
      void start();
    },
    noteList(kind) {
      if (KINDS.some((one) => one === kind)) look();
    },
    findIdle: (file) =>
      file === undefined ? findServed() : findBy(createFindIdlePatterns(file), file.builtIn),
  };
}
