// In which order functions are first called, and what they are called: a breakpoint in each, whose condition notes
// that it was reached and is false, so that nothing ever pauses.
import type { Debugger, Session } from 'node:inspector/promises';
import { findSourceMap } from 'node:module';
import { type CountedFunction, settle } from './count-functions.ts';

export interface WalkedFunction {
  readonly file: string;
  /** Undefined for a function that has none. */
  readonly name: string | undefined;
  /** In the file; counted from 1. */
  readonly line: number | undefined;
  readonly calls: number;
}

declare global {
  /** Numbers of functions, as the conditions note them. */
  var walkedFunctions: number[] | undefined;
}

/** By their first call; those whose first call was not seen come last. */
export async function sortByFirstCall(
  session: Session,
  functions: readonly CountedFunction[],
  run: () => Promise<void>,
): Promise<readonly WalkedFunction[]> {
  await session.post('Debugger.enable');
  const described: WalkedFunction[] = [];
  for (const [at, counted] of functions.entries()) {
    const { scriptId } = counted;
    const { scriptSource } = await session.post('Debugger.getScriptSource', { scriptId });
    described.push(describeFunction(counted, scriptSource));
    await setBreakpoint(session, {
      condition: `globalThis.walkedFunctions?.push(${at}), false`,
      start: locate(scriptId, scriptSource, counted.start),
      end: locate(scriptId, scriptSource, counted.end),
    });
  }
  // Setting the breakpoints takes long: what became due in the meantime is no part of the call.
  await settle();
  globalThis.walkedFunctions = [];
  await run();
  await settle();
  await session.post('Debugger.disable');
  const called = new Set([...globalThis.walkedFunctions, ...functions.keys()]);
  return [...called].flatMap((at) => described[at] ?? []);
}

async function setBreakpoint(
  session: Session,
  { condition, ...range }: { condition: string; start: Debugger.Location; end: Debugger.Location },
): Promise<void> {
  const { locations } = await session.post('Debugger.getPossibleBreakpoints', {
    ...range,
    restrictToFunction: true,
  });
  const [location] = locations;
  if (location === undefined) return;
  await session.post('Debugger.setBreakpoint', { location, condition });
}

function locate(scriptId: string, source: string, offset: number): Debugger.Location {
  const before = source.slice(0, offset);
  const lineNumber = before.split('\n').length - 1;
  return { scriptId, lineNumber, columnNumber: offset - (before.lastIndexOf('\n') + 1) };
}

function describeFunction(counted: CountedFunction, source: string): WalkedFunction {
  const { file, url, scriptId, calls, start, end } = counted;
  const { lineNumber, columnNumber = 0 } = locate(scriptId, source, start);
  const entry = findSourceMap(url)?.findEntry(lineNumber, columnNumber);
  // tsx gives an arrow function its name by `__name(() => …, "name")`.
  const [, named] = /^,\s*"([^"]+)"\)/.exec(source.slice(end, end + 200)) ?? [];
  return {
    ...{ file, calls },
    name: counted.name || named,
    line: entry && 'originalLine' in entry ? entry.originalLine + 1 : undefined,
  };
}
