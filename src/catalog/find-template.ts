// §18.2: finds the template that matches a URI.
import { computeOnce } from '../platform/bounded-map.ts';
import type { Entry } from './prepare-list.ts';

/**
 * Maximum number of positions that are checked for the templates of one server, which takes some milliseconds: a server could list
 * thousands of templates that each take a long time. Further templates of the server match nothing; those of other servers are
 * still tried.
 */
const MAX_WORK = 30_000;

/** The first entry whose template matches. */
export function findTemplate(entries: readonly Entry[], uri: string): Entry | undefined {
  const spent = new Map<string, number>();
  return entries.find((entry) => {
    const matcher = compile(entry);
    const work = (spent.get(entry.server) ?? 0) + matcher.countWork(uri);
    if (work > MAX_WORK) return false;
    spent.set(entry.server, work);
    return matcher.fits(uri);
  });
}

const compile = computeOnce(({ name }: Entry) => compileTemplate(name));

// RFC 6570, as far as needed to find the server that a URI belongs to; the server itself interprets the URI. All possible matches
// are followed simultaneously, position by position: URI and template are untrusted, and backtracking could take minutes.

interface TemplateMatcher {
  fits(uri: string): boolean;
  /** The number of positions to check for this URI; 0 if a match is ruled out beforehand, for example by the beginning. */
  countWork(uri: string): number;
}

/** Maximum number of characters of a URI, and of expressions in a template, that are checked. */
const MAX_URI = 2_048;
const MAX_EXPRESSIONS = 16;

function compileTemplate(template: string): TemplateMatcher {
  const parts = template.split(/(\{[^{}]*\})/);
  // Literals are at even indexes, expressions between them.
  const steps = parts.map((part, index) =>
    index % 2 === 0 ? createText(part) : readExpression(part),
  );
  const [first = ''] = parts;
  const isReadable = parts.length <= 2 * MAX_EXPRESSIONS + 1;
  const canFit = (uri: string) => isReadable && uri.length <= MAX_URI && uri.startsWith(first);

  return {
    countWork: (uri) => (canFit(uri) ? steps.length * uri.length : 0),
    fits(uri) {
      if (!canFit(uri)) return false;
      let ends: readonly number[] = [0];
      for (const step of steps) {
        ends = step(uri, ends);
        if (ends.length === 0) return false;
      }
      return ends.at(-1) === uri.length;
    },
  };
}

/** Maps the positions where the previous step can end to the positions where this step can end, in order. */
type Step = (uri: string, starts: readonly number[]) => readonly number[];

const createText =
  (text: string): Step =>
  (uri, starts) =>
    text === ''
      ? starts
      : starts.filter((at) => uri.startsWith(text, at)).map((at) => at + text.length);

interface Form {
  /** Precedes the values, if there are any; may be empty. */
  readonly first: string;
  /** True for characters of the values and of their separators. */
  readonly allowed: (character: string) => boolean;
  /** True if the expression can be empty. */
  readonly isOptional: boolean;
}

const without =
  (delimiters: string) =>
  (character: string): boolean =>
    !delimiters.includes(character);
const UP_TO_DELIMITER = without('/?#');
const ANYTHING = () => true;

/** RFC 6570 §3.2.1: the form of an expression, by operator. */
const FORMS: Readonly<Record<string, Form>> = {
  '': { first: '', allowed: UP_TO_DELIMITER, isOptional: false },
  '+': { first: '', allowed: ANYTHING, isOptional: false },
  '#': { first: '#', allowed: ANYTHING, isOptional: true },
  '.': { first: '.', allowed: UP_TO_DELIMITER, isOptional: true },
  '/': { first: '/', allowed: without('?#'), isOptional: true },
  ';': { first: ';', allowed: UP_TO_DELIMITER, isOptional: true },
  '?': { first: '?', allowed: without('#'), isOptional: true },
  '&': { first: '&', allowed: without('#'), isOptional: true },
};

/** RFC 6570 §2.2–§2.4: an operator, and names of variables with their modifiers. */
const EXPRESSION = /^\{([+#./;?&]?)[\w.%]+(?:\*|:\d{1,4})?(?:,[\w.%]+(?:\*|:\d{1,4})?)*\}$/;

function readExpression(expression: string): Step {
  const [, operator] = EXPRESSION.exec(expression) ?? [];
  const form = operator === undefined ? undefined : FORMS[operator];
  if (form === undefined) return () => [];
  const { first, allowed, isOptional } = form;

  return function step(uri, starts) {
    const ends: number[] = [];
    const isStart = new Set(starts);
    let isInside = false;
    for (let at = starts[0] ?? uri.length + 1; at <= uri.length; at += 1) {
      const character = uri[at - 1] ?? '';
      // The character before this position either continues values that began earlier, or is the first character of a value.
      isInside = isInside ? allowed(character) : false;
      if (!isInside && isStart.has(at - 1))
        isInside = first === '' ? allowed(character) : character === first;
      if (isInside || (isOptional && isStart.has(at))) ends.push(at);
    }
    return ends;
  };
}
