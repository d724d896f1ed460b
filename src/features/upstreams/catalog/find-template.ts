// §18.2: whose template fits a URI.
import type { Entry } from './entry.ts';
import { compileTemplate, type TemplateMatcher } from './match-template.ts';

/** The first entry whose template fits. */
export type FindTemplate = (entries: readonly Entry[], uri: string) => Entry | undefined;

/**
 * Places that are looked at for the templates of one server, some milliseconds: a server could list thousands that
 * each take long. What is beyond fits nothing; templates of other servers are looked at all the same.
 */
const MAX_WORK = 30_000;

export function createFindTemplate(): FindTemplate {
  const compiled = new WeakMap<Entry, TemplateMatcher>();

  function compile(entry: Entry): TemplateMatcher {
    const matcher = compiled.get(entry) ?? compileTemplate(entry.name);
    compiled.set(entry, matcher);
    return matcher;
  }

  return function findTemplate(entries, uri) {
    const spent = new Map<string, number>();
    return entries.find((entry) => {
      const matcher = compile(entry);
      const work = (spent.get(entry.server) ?? 0) + matcher.countWork(uri);
      if (work > MAX_WORK) return false;
      spent.set(entry.server, work);
      return matcher.fits(uri);
    });
  };
}
