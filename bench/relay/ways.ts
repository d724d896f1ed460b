// The ways on which a call is passed on, and what is called on each of them.
import { hasContent, type Work } from '../calls.ts';
import type { Era } from '../contestants.ts';

/** A server of either era over HTTP, called by a client of the same era; or a process, called in a session. */
export type Way = Era | 'stdio';

export const ERAS: readonly Era[] = ['session', 'stateless'];
export const WAYS: readonly Way[] = [...ERAS, 'stdio'];

export const findEra = (way: Way): Era => (way === 'stateless' ? 'stateless' : 'session');

/** How many tools the server behind the gateway lists. */
export const TOOLS = 300;

export interface Size {
  /** As the tables show it. */
  readonly name: string;
  readonly work: Work;
  /** Whether the server answers with the event of a stream. */
  readonly isStream?: true;
}

/** The call of a usual size. */
export const SMALL_CALL: Work = callTool('small', 1000);

export const LIST: Size = {
  name: `list of ${TOOLS}`,
  work: {
    method: 'tools/list',
    params: {},
    isRight: (result) =>
      typeof result === 'object' &&
      result !== null &&
      'tools' in result &&
      Array.isArray(result.tools) &&
      result.tools.length === TOOLS,
  },
};

/** Results of tools of contestants/server-answers.mjs, as JSON or as the event of a stream, and a list. */
export const RELAY_SIZES: readonly Size[] = [
  { name: '1 KB', work: SMALL_CALL },
  { name: '1 KB SSE', work: callTool('small_stream', 1000), isStream: true },
  { name: '100 KB', work: callTool('large', 100_000) },
  { name: '100 KB SSE', work: callTool('large_stream', 100_000), isStream: true },
  LIST,
];

/** Sessions or none make no difference to lists, and a pipe has no content types. */
export const listSizes = (way: Way): readonly Size[] =>
  RELAY_SIZES.filter(
    (size) => way === 'session' || (size !== LIST && (way !== 'stdio' || !size.isStream)),
  );

export function callTool(name: string, length: number): Work {
  let text = '';
  for (let n = 0; text.length < length; n += 1) {
    text += `${n}: "src/file-${n}.ts" has 12 matches of the pattern that was asked for\n`;
  }
  return {
    method: 'tools/call',
    params: { name, arguments: { message: 'hello' } },
    isRight: hasContent([{ type: 'text', text: text.slice(0, length) }]),
  };
}
