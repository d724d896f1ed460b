// One request as a browser sends it: fetch would say of itself that it is a script.
import { request } from 'node:http';

export interface BrowserAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: string;
}

export function sendAsBrowser(
  url: URL,
  headers: Readonly<Record<string, string>>,
  form?: URLSearchParams,
): Promise<BrowserAnswer> {
  const body = form?.toString();
  return new Promise((resolve, reject) => {
    request(url, {
      method: body === undefined ? 'GET' : 'POST',
      headers: {
        ...headers,
        ...(body !== undefined && {
          'content-type': 'application/x-www-form-urlencoded',
          'content-length': String(Buffer.byteLength(body)),
        }),
      },
    })
      .once('error', reject)
      .once('response', (answer) => {
        let text = '';
        answer
          .setEncoding('utf8')
          .on('data', (chunk: string) => {
            text += chunk;
          })
          .once('error', reject)
          .once('end', () => {
            const received = new Headers();
            for (let at = 0; at < answer.rawHeaders.length; at += 2)
              received.append(answer.rawHeaders[at] ?? '', answer.rawHeaders[at + 1] ?? '');
            resolve({ status: answer.statusCode ?? 0, headers: received, body: text });
          });
      })
      .end(body);
  });
}
