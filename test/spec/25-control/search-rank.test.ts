// What search takes for the same word, and texts that are meant to do harm.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { AT_ONCE } from '../../../bench/search/set.ts';
import type { Entry } from '../../../src/catalog/prepare-list.ts';
import { listNameTerms, listTerms, rank, readQuery } from '../../../src/catalog/search/rank.ts';

function entry(server: string, ownName: string, members: object = {}): Entry {
  const ownItem = { name: ownName, inputSchema: { type: 'object' }, ...members };
  const name = `${server}__${ownName}`;
  const item = { ...ownItem, name };
  return { kind: 'tool', server, ownName, name, ownItem, item, annotations: {} };
}

const find = async (query: string, entries: readonly Entry[]) =>
  (await rank(readQuery(query), entries, AT_ONCE)).map(({ name }) => name);

test.each([
  ['create creates created creating creation', 1],
  ['repository repositories', 1],
  ['process processes processing', 1],
  ['watch watches watcher watching', 1],
  ['stop stopped stopping', 1],
  ['user issue', 2],
  ['status statuses', 1],
])('§25.3 search: of %j there are so many terms: %i', (text, count) => {
  expect(new Set(listTerms(text)).size).toBe(count);
});

test('§25.3 search: names are read by their parts, however they are written', () => {
  const parts = listTerms('list pull requests');
  for (const name of ['list_pull_requests', 'list-pull-requests', 'listPullRequests']) {
    expect(listNameTerms(name)).toEqual(expect.arrayContaining([...parts]));
  }
});

test('§25.3 search: of scripts without spaces each character is a term, and accents stay', () => {
  expect(listTerms('検索する')).toEqual(['検', '索', 'す', 'る']);
  expect(listTerms('Übersicht löschen')).toEqual(['übersicht', 'löschen']);
});

test('§25.3 search: other words of the same meaning are found, after the word itself', async () => {
  const entries = [entry('a', 'delete_event'), entry('a', 'list_users'), entry('a', 'cancel_job')];
  expect((await find('cancel the meeting', entries)).slice(0, 2)).toEqual([
    'a__delete_event',
    'a__cancel_job',
  ]);
  expect(
    (await find('open a PR', [entry('git', 'log'), entry('git', 'create_pull_request')]))[0],
  ).toBe('git__create_pull_request');
});

test('§25.3 search: titles, descriptions, names of arguments and of the server count', async () => {
  const entries = [
    entry('one', 't1', { title: 'Weather forecast' }),
    entry('one', 't2', { description: 'Says how much a parcel costs.' }),
    entry('one', 't3', { inputSchema: { type: 'object', properties: { zipCode: {} } } }),
    entry('stripe', 't4'),
  ];
  expect(await find('forecast', entries)).toEqual(['one__t1']);
  expect(await find('parcels', entries)).toEqual(['one__t2']);
  expect(await find('zip', entries)).toEqual(['one__t3']);
  expect(await find('Stripe', entries)).toEqual(['stripe__t4']);
  expect(await find('nothing', entries)).toEqual([]);
  expect(await find('', entries)).toEqual([]);
});

test('§25.3 search: a tool that repeats every word does not push out those that are about it', async () => {
  const words = 'merge pull request issue commit branch delete create update list search ';
  const spam = entry('spam', 'helper', { description: words.repeat(300) });
  const about = ['merge_pull_request', 'list_issues', 'create_branch'].map((name) =>
    entry('github', name, { description: `${name.replaceAll('_', ' ')} in a repository.` }),
  );
  for (const { ownName, name } of about) {
    expect((await find(ownName.replaceAll('_', ' '), [spam, ...about]))[0]).toBe(name);
  }
});

test('§25.3 search: what stands in a query is never a pattern', async () => {
  const entries = [entry('a', 'read', { description: 'aaaaaaaaaaaaaaaaaaaaaaaa!' })];
  for (const query of ['.*', '(a+)+$', '[', '\\', '__proto__', 'constructor', 'hasOwnProperty']) {
    expect(await find(query, entries)).toEqual([]);
  }
});

test('§25.3 search: whatever is asked of whatever tools, the answer is some of them, each once, and always the same', async () => {
  const text = fc.string({ unit: 'grapheme', maxLength: 3_000 });
  await fc.assert(
    fc.asyncProperty(
      text,
      fc.array(fc.tuple(text, text), { maxLength: 8 }),
      async (query, given) => {
        const entries = given.map(([name, description], at) =>
          entry(`s${at}`, name, { description }),
        );
        const found = await rank(readQuery(query), entries, AT_ONCE);
        expect(new Set(found).size).toBe(found.length);
        expect(found.every((one) => entries.includes(one))).toBe(true);
        expect(await rank(readQuery(query), entries, AT_ONCE)).toEqual(found);
      },
    ),
    { numRuns: 200 },
  );
});
