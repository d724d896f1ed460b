// OAuth Client ID Metadata Documents §5.2: how long a document is kept, and how rarely it is fetched.
import type { ServerResponse } from 'node:http';
import { beforeEach, expect, test } from 'vitest';
import { useShared } from '../../support/lifetimes.ts';
import { startClientDocuments } from '../../support/oauth/client-documents.ts';
import { documentAnswer } from '../../support/oauth/document-host.ts';

const NOW = 1_800_000_000_000;
const at = (seconds: number) => new Date(NOW + seconds * 1000).toUTCString();

const started = useShared(startClientDocuments);
let documents: typeof started.documents;
let id = '';
let count = 0;

beforeEach(() => {
  documents = started.open();
  started.host.answer(documentAnswer());
  count += 1;
  id = `https://client.example/cache/${count}`;
});

/** Requests that reach the host meanwhile. */
async function requestsOf(work: () => Promise<unknown>): Promise<number> {
  const before = started.host.requests.length;
  await work();
  return started.host.requests.length - before;
}

type Headers = Record<string, string>;

const LIFETIMES: readonly (readonly [headers: Headers, seconds: number])[] = [
  [{}, 300],
  [{ 'Cache-Control': 'public' }, 300],
  [{ 'Cache-Control': 'max-age=60' }, 60],
  [{ 'Cache-Control': 'public, Max-Age="60", immutable' }, 60],
  [{ 'Cache-Control': 'max-age=60, max-age=30' }, 30],
  [{ 'Cache-Control': 'max-age=60', Expires: 'Thu, 01 Jan 1970 00:00:00 GMT' }, 60],
  [{ 'Cache-Control': 'max-age=60', Age: '20' }, 40],
  [{ 'Cache-Control': 'max-age=60', Age: '61' }, 0],
  [{ 'Cache-Control': 'max-age=60', Age: 'x' }, 60],
  [{ 'Cache-Control': 'max-age=31536000' }, 86_400],
  [{ 'Cache-Control': `max-age=${'9'.repeat(400)}` }, 86_400],
  [{ 'Cache-Control': 'max-age=0' }, 0],
  [{ 'Cache-Control': 'max-age=-5' }, 0],
  [{ 'Cache-Control': 'max-age=soon' }, 0],
  [{ 'Cache-Control': 'max-age' }, 0],
  [{ 'Cache-Control': 'no-store' }, 0],
  [{ 'Cache-Control': 'max-age=60, NO-STORE' }, 0],
  [{ 'Cache-Control': 'no-cache' }, 0],
  [{ 'Cache-Control': 's-maxage=600' }, 300],
  [{ Date: at(0), Expires: at(90) }, 90],
  [{ Date: at(-1000), Expires: at(-910) }, 90],
  [{ Date: at(0), Expires: at(-1) }, 0],
  [{ Date: at(0), Expires: at(999_999) }, 86_400],
  [{ Expires: 'never' }, 0],
];

test.each(LIFETIMES)(
  '§14 client documents: a document with %j is kept for %i s',
  async (headers, seconds) => {
    started.host.answer(documentAnswer({}, headers));
    expect(await requestsOf(() => documents.find(id))).toBe(1);
    if (seconds > 0) {
      started.clock.advance(seconds * 1000 - 1);
      expect(await requestsOf(() => documents.find(id))).toBe(0);
      started.clock.advance(1);
    }
    expect(await requestsOf(() => documents.find(id))).toBe(1);
  },
);

test('§14 client documents: what a document says anew is taken at its next fetch', async () => {
  started.host.answer(documentAnswer({ client_name: 'old' }));
  await documents.find(id);
  started.host.answer(documentAnswer({ client_name: 'new' }));
  expect((await documents.find(id)).client_name).toBe('old');
  started.clock.advance(300_000);
  expect((await documents.find(id)).client_name).toBe('new');
});

test('§14 client documents: an expired document is not used when it cannot be fetched again', async () => {
  await documents.find(id);
  started.clock.advance(300_000);
  started.host.answer((res) => res.writeHead(503).end());
  await expect(documents.find(id)).rejects.toThrow(`${id} answered 503.`);
  await expect(documents.find(id)).rejects.toThrow(`${id} answered 503.`);
});

test('§14 client documents: after a failure there is a pause of 5 s for that URL only', async () => {
  started.host.answer((res) => res.writeHead(404, { 'Cache-Control': 'max-age=600' }).end());
  const fail = async () => expect(documents.find(id)).rejects.toThrow('answered 404');
  expect(await requestsOf(fail)).toBe(1);
  started.host.answer(documentAnswer());
  started.clock.advance(4999);
  expect(await requestsOf(fail)).toBe(0);
  expect(await requestsOf(() => documents.find(`${id}/other`))).toBe(1);
  started.clock.advance(1);
  expect((await documents.find(id)).client_id).toBe(id);
});

test('§14 client documents: a document that is refused is not kept either', async () => {
  started.host.answer(documentAnswer({ client_secret: 's' }));
  const fail = async () => expect(documents.find(id)).rejects.toThrow('has a client_secret');
  expect(await requestsOf(fail)).toBe(1);
  expect(await requestsOf(fail)).toBe(0);
  started.clock.advance(5000);
  expect(await requestsOf(fail)).toBe(1);
});

test('§14 client documents: a failure is logged once, not for every login', async () => {
  started.host.answer((res) => res.writeHead(404).end());
  const before = started.lines.length;
  for (let call = 0; call < 10; call++) await documents.find(id).catch(() => {});
  expect(started.lines.length).toBe(before + 1);
});

test('§14 client documents: a hundred at once make one fetch, even of what is not kept', async () => {
  started.host.answer(documentAnswer({}, { 'Cache-Control': 'no-store' }));
  const all = () => Promise.all(Array.from({ length: 100 }, () => documents.find(id)));
  expect(await requestsOf(all)).toBe(1);
  started.host.answer((res) => res.writeHead(500).end());
  const fail = () =>
    Promise.allSettled(Array.from({ length: 100 }, () => documents.find(id))).then((results) =>
      expect(results.every(({ status }) => status === 'rejected')).toBe(true),
    );
  expect(await requestsOf(fail)).toBe(1);
});

test('§14 client documents: at most 20 fetches are under way', async () => {
  const held: ServerResponse[] = [];
  started.host.answer((res) => void held.push(res));
  const finds = Array.from({ length: 20 }, (_, n) => documents.find(`${id}/${n}`));
  const ended = Promise.allSettled(finds);
  await expect.poll(() => held.length).toBe(20);
  const tooMany = 'Too many client metadata documents are being fetched.';
  await expect(documents.find(id)).rejects.toThrow(tooMany);
  const joined = documents.find(`${id}/0`);
  started.clock.advance(5000);
  await expect(joined).rejects.toThrow('within 5 s');
  await ended;
  // Being turned away is no failure of the URL, and everything is free again.
  started.host.answer(documentAnswer());
  expect((await documents.find(id)).client_id).toBe(id);
});

test('§14 client documents: 1000 documents are kept, and failures push none of them out', async () => {
  const urls = Array.from({ length: 1001 }, (_, n) => `${id}/${n}`);
  const findAll = async (ids: readonly string[]) => {
    for (let from = 0; from < ids.length; from += 20) {
      await Promise.allSettled(ids.slice(from, from + 20).map((url) => documents.find(url)));
    }
  };
  expect(await requestsOf(() => findAll(urls.slice(0, 1000)))).toBe(1000);
  started.host.answer(documentAnswer({}, { 'Cache-Control': 'no-store' }));
  await documents.find(`${id}/not-kept`);
  started.host.answer(documentAnswer());
  expect(await requestsOf(() => documents.find(`${id}/0`))).toBe(0);
  await documents.find(`${id}/1000`);
  started.host.answer((res) => res.writeHead(404).end());
  const madeUp = urls.map((url) => `${url}/made-up`);
  expect(await requestsOf(() => findAll(madeUp))).toBe(1001);
  started.host.answer(documentAnswer());
  expect(await requestsOf(() => findAll(urls.slice(1)))).toBe(0);
  expect(await requestsOf(() => documents.find(`${id}/0`))).toBe(1);
});
