// A member of the configuration file that nothing reads would be taken, described by editors, and mean nothing.
import { expect, test } from 'vitest';
import { parseText } from '../../../src/config/file/shapes/shape.ts';
import {
  createGatewayFileSchema,
  fileShape,
} from '../../../src/gateway/configuration/gateway-file.ts';
import { isObject } from '../../../src/platform/json.ts';
import { TRANSPORTS } from '../../../src/servers/transport/transports.ts';

/** Members of other programs, which are known and not read. */
const isForeign = (member: unknown): boolean =>
  isObject(member) && member.description === 'Of another program. Postern ignores it.';

const listMembers = (described: unknown): readonly string[] =>
  isObject(described) && isObject(described.properties)
    ? Object.entries(described.properties).flatMap(([name, of]) => (isForeign(of) ? [] : [name]))
    : [];

/** Places of what is wrong with a file. */
function listPlaces(content: object): readonly string[] {
  const source = { fileName: 'postern.json', format: 'json', env: {} } as const;
  const parsed = parseText(JSON.stringify(content), source, fileShape);
  if (parsed.kind === 'broken') throw new Error(parsed.problem.message);
  return parsed.listProblems().map(({ place = '' }) => place);
}

const schema = createGatewayFileSchema();
const definitions = isObject(schema.definitions) ? schema.definitions : {};

test('§18.1 file: each of its members is read', () => {
  const unread = listMembers(schema).filter(
    (name) => !listPlaces({ [name]: null }).some((place) => place.endsWith(name)),
  );
  expect(listMembers(schema)).toContain('guards');
  expect(unread).toEqual([]);
});

/** Read once the user of the system can be looked up. */
const READ_LATER: readonly string[] = ['runAs'];

test('§18.1 file: each member of a server is read', () => {
  const names = listMembers(definitions.server).filter((name) => !READ_LATER.includes(name));
  const addresses = TRANSPORTS.map(({ addresses: [{ name }] }) => ({
    [name]: 'https://x.example',
  }));
  const unread = names.filter(
    (name) =>
      !addresses.every((address) =>
        listPlaces({ mcpServers: { wiki: { ...address, [name]: null } } }).some((place) =>
          place.endsWith(`.${name}`),
        ),
      ),
  );
  expect(names).toContain('auth');
  expect(unread).toEqual([]);
});
