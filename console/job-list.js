import { signal } from '@preact/signals';
import { call } from './api.js';

/** @typedef {import('./api.js').ListedJob} ListedJob */

/** Jobs that the newest page has, and those that are loaded at once when somebody scrolls down; the API's limit is 200. */
const TOP_PAGE_SIZE = 50;
const PAGE_SIZE = 200;

/**
 * The jobs of one filter, newest first: loaded page by page, and kept current. While the list is held, its rows change in
 * place, and none is added above another or removed; `withheld` counts what waits for the release. Identifiers of jobs sort by
 * the time of the submission.
 */
export class JobList {
  /** Identifiers of the rows; null until the first page is there. @type {import('@preact/signals').Signal<string[] | null>} */
  rows = signal(null);
  /** Rows that are missing or superfluous because the list is held. */
  withheld = signal(0);
  /** True once the oldest job is in the list. */
  isComplete = signal(false);
  /** Counts the changes of rows. */
  version = signal(0);
  /** @type {Map<string, ListedJob>} */
  #jobs = new Map();
  /** Jobs that the service would list now, as far as they are loaded. @type {string[]} */
  #current = [];
  /** The pages that were loaded: the cursor of each, and the last job of the page before it. @type {{ cursor: string | null, after: string | null }[]} */
  #pages = [{ cursor: null, after: null }];
  /** @type {string | null} */
  #nextCursor = null;
  /** The gap between the newest jobs and the others, where jobs are missing. @type {{ after: string, cursor: string | null } | null} */
  #gap = null;
  #isHeld = false;
  /** Rows that are superfluous. @type {Set<string>} */
  #left = new Set();
  #filter;
  #abort;
  /** Requests follow each other, so that no page is put where the list was meanwhile replaced. @type {Promise<unknown>} */
  #last = Promise.resolve();
  #loadsMore = false;

  /** @param {Record<string, string>} filter as in the query of the list @param {AbortSignal} abort ends all requests */
  constructor(filter, abort) {
    this.#filter = filter;
    this.#abort = abort;
  }

  /** @param {string} id */
  job(id) {
    return this.#jobs.get(id);
  }

  /** Returns true where a job in a held list is known no longer to have the state that it is shown with. @param {string} id */
  hasLeft(id) {
    return this.#left.has(id) && this.#hasStatus(id);
  }

  /** Loads the newest page again, and the one that a row is on. Rejects with an ApiError. @param {string} [visibleId] */
  refresh(visibleId) {
    return this.#inTurn(async () => {
      const [top = { cursor: null, after: null }] = this.#pages;
      await this.#load(top, TOP_PAGE_SIZE);
      const seen = this.#pages.findLast(({ after }) => after !== null && visibleId !== undefined && visibleId < after);
      if (seen !== undefined) await this.#load(seen, PAGE_SIZE);
    });
  }

  /** Loads the next older page, unless it is on its way. Rejects with an ApiError. */
  async loadMore() {
    if (this.#loadsMore || this.isComplete.value || this.rows.value === null) return;
    this.#loadsMore = true;
    try {
      await this.#inTurn(async () => {
        const page = { cursor: this.#nextCursor, after: this.#current.at(-1) ?? null };
        if (page.cursor === null) return;
        await this.#load(page, PAGE_SIZE);
        this.#pages.push(page);
      });
    } finally {
      this.#loadsMore = false;
    }
  }

  /** @param {() => Promise<void>} task */
  #inTurn(task) {
    const turn = this.#last.then(task);
    this.#last = turn.catch(() => undefined);
    return turn;
  }

  /**
   * Takes jobs as they are now, from the stream. Returns true when the list has to be refreshed, because one of them may belong
   * into it and is not there: only the service knows what a filter finds.
   * @param {readonly ListedJob[]} jobs
   */
  update(jobs) {
    const { status } = this.#filter;
    for (const job of jobs) if (this.#jobs.has(job.job_id)) this.#remember(job);
    this.#current = this.#current.filter((id) => this.#hasStatus(id));
    this.#show();
    const last = this.isComplete.value ? '' : (this.#current.at(-1) ?? '');
    const isListed = new Set(this.#current);
    return jobs.some((job) => job.job_id > last && !isListed.has(job.job_id) && (status ?? job.status) === job.status);
  }

  /** Holds the list, or lets it follow what the service lists. @param {boolean} isHeld */
  hold(isHeld) {
    if (isHeld === this.#isHeld) return;
    this.#isHeld = isHeld;
    this.#show();
  }

  /** @param {{ cursor: string | null, after: string | null }} page @param {number} limit */
  async #load({ cursor, after }, limit) {
    const query = new URLSearchParams({ ...this.#filter, limit: String(limit), ...(cursor !== null && { cursor }) });
    /** @type {import('./api.js').JobList} */
    const { jobs, next_cursor: next } = await call('GET', `v2/jobs?${query}`, { signal: this.#abort });
    for (const job of jobs) this.#remember(job);
    this.#merge(
      jobs.map((job) => job.job_id),
      after,
      next,
    );
    this.#show();
  }

  /**
   * Puts a page into the list: what lies in its range and is not on it is not listed any more.
   * @param {string[]} ids @param {string | null} after @param {string | null} next
   */
  #merge(ids, after, next) {
    const last = ids.at(-1) ?? '';
    const above = after === null ? [] : this.#current.filter((id) => id >= after);
    const below = next === null ? [] : this.#current.filter((id) => id < last);
    // More jobs came than the newest page has.
    if (after === null && below.length > 0 && (this.#current[0] ?? '') < last)
      this.#gap = { after: last, cursor: next };
    // The answer may be older than what the stream has told of a job.
    this.#current = [...above, ...ids.filter((id) => this.#hasStatus(id)), ...below];
    if (below.length === 0) this.#nextCursor = next;
    this.isComplete.value = this.#nextCursor === null;
  }

  /** Returns true where a job has the state that the list is filtered by. @param {string} id */
  #hasStatus(id) {
    const { status } = this.#filter;
    return status === undefined || this.#jobs.get(id)?.status === status;
  }

  /** Drops the jobs behind a gap: they are loaded again when somebody scrolls to them. */
  #closeGap() {
    if (this.#gap === null) return;
    const { after, cursor } = this.#gap;
    this.#current = this.#current.filter((id) => id >= after);
    this.#nextCursor = cursor;
    this.#pages.length = 1;
    this.#gap = null;
    this.isComplete.value = cursor === null;
  }

  /**
   * Keeps a job as it is now; what has not changed stays the same object, so that its row is not rendered again. A job that has
   * finished does not change: an answer that was under way may be older.
   * @param {ListedJob} job
   */
  #remember(job) {
    const known = this.#jobs.get(job.job_id);
    if (known?.timing.finished_at !== undefined || JSON.stringify(known) === JSON.stringify(job)) return;
    this.#jobs.set(job.job_id, job);
  }

  #show() {
    const shown = this.rows.value;
    if (!this.#isHeld) this.#closeGap();
    this.version.value += 1;
    if (shown === null || shown.length === 0 || !this.#isHeld) {
      this.rows.value = this.#current;
      this.#left.clear();
      this.withheld.value = 0;
      return;
    }
    const last = shown.at(-1) ?? '';
    const rows = [...shown, ...this.#current.filter((id) => id < last)];
    const [listed, present] = [new Set(this.#current), new Set(rows)];
    this.rows.value = rows;
    this.#left = new Set(rows.filter((id) => !listed.has(id)));
    this.withheld.value = this.#current.filter((id) => !present.has(id)).length + this.#left.size;
  }
}
