// Headers that the file gives to each request to a server or to a guard.
import { isConnectionHeader } from '../../../platform/http-client/write-request.ts';
import { createRecordShape, record } from './collection.ts';
import { text, warnOfBareVariable } from './scalar.ts';
import { report, type Shape } from './shape.ts';

/** RFC 9110 §5.6.2. */
const NAME = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/;

/** RFC 9110 §5.5: visible characters, spaces and tabs; no line breaks, which would begin another header. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

const headerValue = text(
  {
    parse: (given) => (VALUE.test(given) ? given.trim() : undefined),
    allowed: 'one line of Latin-1 text',
    explain: (given) =>
      /[\r\n]/.test(given) ? 'It contains a line break, perhaps at its end.' : undefined,
  },
  { schema: { type: 'string' }, isSecret: true },
);

/** Names are read in lower case. `ownNames` are those that Postern itself gives to such a request, in lower case. */
export function requestHeaders(
  ownNames: ReadonlySet<string>,
): Shape<Readonly<Record<string, string>>> {
  const named = record(warnOfBareVariable(headerValue), {
    allowed: `an object of headers, such as { "Authorization": "Bearer \${TOKEN}" }`,
    names: { pattern: NAME.source },
    // Never repeats a name that is none: somebody may have put a token there.
    checkName(name) {
      if (!NAME.test(name))
        return 'A header’s name consists of letters, digits and hyphens, without a colon or a space.';
      return ownNames.has(name.toLowerCase()) || isConnectionHeader(name)
        ? `The header ${name} cannot be set: it belongs to the connection, or Postern sets it itself.`
        : undefined;
    },
  });

  return {
    schema: named.schema,
    read(node, place) {
      const given = named.read(node, place);
      if (given === undefined) return undefined;
      const headers = Object.entries(given).map(
        ([name, value]) => [name.toLowerCase(), value] as const,
      );
      const names = headers.map(([name]) => name).filter((name) => NAME.test(name));
      const twice = names.find((name, index) => names.indexOf(name) !== index);
      if (twice !== undefined)
        report(place, node.line, `The header ${twice} is given twice: case does not count.`);
      return createRecordShape(headers);
    },
  };
}
