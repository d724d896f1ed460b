// What the compiler does not see of rows: names that two of their members repeat.
import { expect, test } from 'vitest';
import type { Member, MemberReader } from '../../../src/config/file/shapes/shape.ts';
import { GUARD_KINDS } from '../../../src/control/guards/guard-config.ts';
import { commonMembers, SERVER_TYPES } from '../../../src/servers/config/common-members.ts';
import { CREDENTIAL_TYPES } from '../../../src/servers/credentials/credentials.ts';
import { TRANSPORTS } from '../../../src/servers/transport/transports.ts';

/** Reads an object in which nothing stands; `asked` are the members that were asked for, `said` what was reported. */
function readNothing(read: (members: MemberReader) => unknown) {
  const asked = new Set<Member<unknown>>();
  const said: string[] = [];
  read({
    line: 1,
    isEmpty: true,
    has(member) {
      asked.add(member);
      return false;
    },
    read<T>(member: Member<T>): T | undefined {
      asked.add(member);
      return undefined;
    },
    report(message) {
      said.push(message);
      return undefined;
    },
  });
  return { asked: [...asked], said };
}

const sortNames = (members: readonly Member<unknown>[]): readonly string[] =>
  [...new Set(members.map(({ name }) => name))].sort();

/** Members of one name that are not one object: editors would show one of them alone. */
function listTwins(rows: readonly { readonly members: readonly Member<unknown>[] }[]) {
  const all = [...new Set(rows.flatMap(({ members }) => members))];
  return all.filter((one) => all.some((other) => other !== one && other.name === one.name));
}

test.each(CREDENTIAL_TYPES.map((row) => ({ type: row.type, row })))(
  '§18.6 $type: reads the members that it lists, and misses those that it requires',
  ({ row }) => {
    const { asked, said } = readNothing(row.read);
    expect(sortNames(asked)).toEqual(sortNames(row.members));
    const missed = said.map((message) => /^"(\w+)" is missing/.exec(message)?.[1]);
    expect(missed.sort()).toEqual(sortNames(row.required));
  },
);

test('§18.6 types of credentials share the members that have one name', () => {
  expect(listTwins(CREDENTIAL_TYPES)).toEqual([]);
});

test.each(GUARD_KINDS.map((row) => ({ kind: row.kind, row })))(
  '§26.1 guards: $kind reads the members that it lists',
  ({ row: { read, members, naming } }) => {
    const listed = naming === undefined ? members : [...members, naming];
    expect(sortNames(readNothing(read).asked)).toEqual(sortNames(listed));
  },
);

test('§26.1 guards: kinds share the members that have one name', () => {
  const comeWithIt = GUARD_KINDS.filter(({ naming }) => naming === undefined);
  expect(listTwins(comeWithIt)).toEqual([]);
});

test.each(TRANSPORTS.map((row) => ({ kind: row.kind, row })))(
  '§18.3 $kind: lists its addresses, and what it reads, among its members',
  ({ row: { build, addresses, members } }) => {
    const listed = [...members, ...Object.values(commonMembers)];
    const { asked } = readNothing((reader) => build(reader, undefined));
    expect([...addresses, ...asked].filter((member) => !listed.includes(member))).toEqual([]);
  },
);

test('§18.1 file: each type of a server is of one transport', () => {
  const owned: readonly string[] = TRANSPORTS.flatMap(({ types }) => types.all);
  expect(owned.toSorted()).toEqual(SERVER_TYPES.toSorted());
});
