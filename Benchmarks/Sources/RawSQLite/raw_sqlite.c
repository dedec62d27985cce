#include "raw_sqlite.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TAGS 200
#define BATCH 1000
#define CHECK(call)                                                            \
  do {                                                                         \
    int code_ = (call);                                                        \
    if (code_ != SQLITE_OK && code_ != SQLITE_DONE && code_ != SQLITE_ROW) {   \
      fprintf(stderr, "raw sqlite: %s\n", sqlite3_errmsg(db));                 \
      return code_;                                                            \
    }                                                                          \
  } while (0)

static clockid_t clock_of_run = CLOCK_MONOTONIC;

void raw_sqlite_measure_processor_time(void) { clock_of_run = CLOCK_PROCESS_CPUTIME_ID; }

double raw_sqlite_now(void) {
  struct timespec t;
  clock_gettime(clock_of_run, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static uint64_t next(uint64_t *state) {
  uint64_t z = (*state += 0x9E3779B97F4A7C15ull);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

typedef struct {
  char title[48];
  char content[216];
  double timestamp;
  int64_t score;
} post_data;

static void make_post(int64_t i, post_data *post) {
  uint64_t state = (uint64_t)i * 0x9E3779B97F4A7C15ull;
  uint64_t r0 = next(&state), r1 = next(&state), r2 = next(&state);
  snprintf(post->title, sizeof post->title, "Post %06lld %016llx", (long long)i,
           (unsigned long long)r0);
  for (int k = 0; k < 13; k++)
    snprintf(post->content + 16 * k, 17, "%016llx", (unsigned long long)next(&state));
  post->timestamp = 1.6e9 + (double)(r1 % 100000000ull);
  post->score = (int64_t)(r2 % 1000);
}

static const char *schema =
    "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
    "CREATE TABLE post (id INTEGER PRIMARY KEY, score INTEGER, timestamp REAL, content TEXT,"
    " title TEXT);"
    "CREATE TABLE attachment (id INTEGER PRIMARY KEY, size INTEGER, post INTEGER, name TEXT);"
    "CREATE INDEX attachment_post ON attachment (post);"
    "CREATE TABLE tag (id INTEGER PRIMARY KEY, name TEXT);"
    "CREATE TABLE post_tag (post INTEGER, tag INTEGER, PRIMARY KEY (post, tag));"
    "CREATE INDEX post_tag_tag ON post_tag (tag, post);";

static int insert_phase(sqlite3 *db, int64_t posts, double *seconds) {
  sqlite3_stmt *post, *attachment, *tag, *link;
  CHECK(sqlite3_prepare_v2(db, "INSERT INTO post VALUES (?,?,?,?,?)", -1, &post, NULL));
  CHECK(sqlite3_prepare_v2(db, "INSERT INTO attachment VALUES (?,?,?,?)", -1, &attachment, NULL));
  CHECK(sqlite3_prepare_v2(db, "INSERT INTO tag VALUES (?,?)", -1, &tag, NULL));
  CHECK(sqlite3_prepare_v2(db, "INSERT INTO post_tag VALUES (?,?)", -1, &link, NULL));
  post_data *batch = malloc(sizeof(post_data) * BATCH);
  char name[32];
  *seconds = 0;
  for (int64_t first = 1; first <= posts; first += BATCH) {
    int64_t last = first + BATCH - 1 < posts ? first + BATCH - 1 : posts;
    for (int64_t i = first; i <= last; i++) make_post(i, &batch[i - first]);
    double start = raw_sqlite_now();
    CHECK(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL));
    if (first == 1)
      for (int t = 0; t < TAGS; t++) {
        int n = snprintf(name, sizeof name, "tag%03d", t);
        sqlite3_bind_int64(tag, 1, t + 1);
        sqlite3_bind_text(tag, 2, name, n, SQLITE_TRANSIENT);
        CHECK(sqlite3_step(tag));
        sqlite3_reset(tag);
      }
    for (int64_t i = first; i <= last; i++) {
      post_data *data = &batch[i - first];
      sqlite3_bind_int64(post, 1, i);
      sqlite3_bind_int64(post, 2, data->score);
      sqlite3_bind_double(post, 3, data->timestamp);
      sqlite3_bind_text(post, 4, data->content, 208, SQLITE_STATIC);
      sqlite3_bind_text(post, 5, data->title, (int)strlen(data->title), SQLITE_STATIC);
      CHECK(sqlite3_step(post));
      sqlite3_reset(post);
      int n = snprintf(name, sizeof name, "att%06lld", (long long)i);
      sqlite3_bind_int64(attachment, 1, i);
      sqlite3_bind_int64(attachment, 2, (i * 31) % 100000);
      sqlite3_bind_int64(attachment, 3, i);
      sqlite3_bind_text(attachment, 4, name, n, SQLITE_TRANSIENT);
      CHECK(sqlite3_step(attachment));
      sqlite3_reset(attachment);
      int64_t one = (i * 7) % TAGS, two = (i * 13 + 5) % TAGS;
      if (one == two) two = (two + 1) % TAGS;
      sqlite3_bind_int64(link, 1, i);
      sqlite3_bind_int64(link, 2, one + 1);
      CHECK(sqlite3_step(link));
      sqlite3_reset(link);
      sqlite3_bind_int64(link, 2, two + 1);
      CHECK(sqlite3_step(link));
      sqlite3_reset(link);
    }
    CHECK(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL));
    *seconds += raw_sqlite_now() - start;
  }
  free(batch);
  sqlite3_finalize(post);
  sqlite3_finalize(attachment);
  sqlite3_finalize(tag);
  sqlite3_finalize(link);
  return SQLITE_OK;
}

typedef struct {
  int64_t id, score;
  double timestamp;
  char *title, *content;
  int title_length, content_length;
} post_object;

static void read_post(sqlite3_stmt *statement, post_object *object) {
  object->id = sqlite3_column_int64(statement, 0);
  object->score = sqlite3_column_int64(statement, 1);
  object->timestamp = sqlite3_column_double(statement, 2);
  object->content_length = sqlite3_column_bytes(statement, 3);
  object->content = malloc((size_t)object->content_length + 1);
  memcpy(object->content, sqlite3_column_text(statement, 3), (size_t)object->content_length);
  object->title_length = sqlite3_column_bytes(statement, 4);
  object->title = malloc((size_t)object->title_length + 1);
  memcpy(object->title, sqlite3_column_text(statement, 4), (size_t)object->title_length);
}

static void free_post(post_object *object) {
  free(object->title);
  free(object->content);
}

static int fetch_phase(sqlite3 *db, int64_t posts, raw_sqlite_result *result) {
  post_object *objects = malloc(sizeof(post_object) * (size_t)posts);
  double start = raw_sqlite_now();
  sqlite3_stmt *select;
  CHECK(sqlite3_prepare_v2(db,
                           "SELECT id, score, timestamp, content, title FROM post"
                           " WHERE score >= 500 ORDER BY timestamp DESC, id",
                           -1, &select, NULL));
  int64_t count = 0;
  while (sqlite3_step(select) == SQLITE_ROW) read_post(select, &objects[count++]);
  for (int64_t i = 0; i < count; i++) {
    result->fetch_score += objects[i].score;
    result->fetch_length += objects[i].content_length;
  }
  result->fetch = raw_sqlite_now() - start;
  result->fetch_rows = count;
  sqlite3_finalize(select);
  for (int64_t i = 0; i < count; i++) free_post(&objects[i]);
  free(objects);
  return SQLITE_OK;
}

static int by_id_phase(sqlite3 *db, int64_t posts, raw_sqlite_result *result) {
  double start = raw_sqlite_now();
  sqlite3_stmt *select;
  CHECK(sqlite3_prepare_v2(
      db, "SELECT id, score, timestamp, content, title FROM post WHERE id = ?", -1, &select, NULL));
  uint64_t state = 42;
  for (int k = 0; k < 10000; k++) {
    sqlite3_bind_int64(select, 1, (int64_t)(next(&state) % (uint64_t)posts) + 1);
    if (sqlite3_step(select) == SQLITE_ROW) {
      post_object object;
      read_post(select, &object);
      result->by_id_score += object.score;
      free_post(&object);
    }
    sqlite3_reset(select);
  }
  sqlite3_finalize(select);
  result->by_id = raw_sqlite_now() - start;
  return SQLITE_OK;
}

static int traverse_phase(sqlite3 *db, int64_t posts, raw_sqlite_result *result) {
  double start = raw_sqlite_now();
  sqlite3_stmt *tags, *attachments;
  CHECK(sqlite3_prepare_v2(
      db, "SELECT t.id, t.name FROM post_tag l JOIN tag t ON t.id = l.tag WHERE l.post = ?", -1,
      &tags, NULL));
  CHECK(sqlite3_prepare_v2(db, "SELECT id, size, name FROM attachment WHERE post = ?", -1,
                           &attachments, NULL));
  for (int64_t i = 1; i <= posts; i++) {
    sqlite3_bind_int64(tags, 1, i);
    while (sqlite3_step(tags) == SQLITE_ROW) result->tag_names += sqlite3_column_bytes(tags, 1);
    sqlite3_reset(tags);
    sqlite3_bind_int64(attachments, 1, i);
    while (sqlite3_step(attachments) == SQLITE_ROW)
      result->attachment_sizes += sqlite3_column_int64(attachments, 1);
    sqlite3_reset(attachments);
  }
  sqlite3_finalize(tags);
  sqlite3_finalize(attachments);
  result->traverse = raw_sqlite_now() - start;
  return SQLITE_OK;
}

static int update_phase(sqlite3 *db, int64_t posts, raw_sqlite_result *result) {
  double start = raw_sqlite_now();
  sqlite3_stmt *select, *update;
  CHECK(sqlite3_prepare_v2(
      db, "SELECT id, score, timestamp, content, title FROM post WHERE id = ?", -1, &select, NULL));
  CHECK(sqlite3_prepare_v2(db, "UPDATE post SET title = ?, score = ? WHERE id = ?", -1, &update,
                           NULL));
  for (int64_t k = 0; k < 10000; k++) {
    if (k % BATCH == 0) CHECK(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL));
    sqlite3_bind_int64(select, 1, (k * 7919 + 13) % posts + 1);
    CHECK(sqlite3_step(select));
    post_object object;
    read_post(select, &object);
    sqlite3_reset(select);
    object.title[object.title_length] = '!';
    sqlite3_bind_text(update, 1, object.title, object.title_length + 1, SQLITE_TRANSIENT);
    sqlite3_bind_int64(update, 2, object.score + 1);
    sqlite3_bind_int64(update, 3, object.id);
    CHECK(sqlite3_step(update));
    sqlite3_reset(update);
    free_post(&object);
    if (k % BATCH == BATCH - 1) CHECK(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL));
  }
  sqlite3_finalize(select);
  sqlite3_finalize(update);
  result->update = raw_sqlite_now() - start;
  return SQLITE_OK;
}

static int erase_phase(sqlite3 *db, int64_t posts, raw_sqlite_result *result) {
  double start = raw_sqlite_now();
  const char *texts[] = {"DELETE FROM attachment WHERE post = ?",
                         "DELETE FROM post_tag WHERE post = ?", "DELETE FROM post WHERE id = ?"};
  sqlite3_stmt *statements[3];
  for (int s = 0; s < 3; s++)
    CHECK(sqlite3_prepare_v2(db, texts[s], -1, &statements[s], NULL));
  for (int64_t k = 0; k < 10000; k++) {
    if (k % BATCH == 0) CHECK(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL));
    for (int s = 0; s < 3; s++) {
      sqlite3_bind_int64(statements[s], 1, (k * 7907 + 29) % posts + 1);
      CHECK(sqlite3_step(statements[s]));
      sqlite3_reset(statements[s]);
    }
    if (k % BATCH == BATCH - 1) CHECK(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL));
  }
  for (int s = 0; s < 3; s++) sqlite3_finalize(statements[s]);
  result->erase = raw_sqlite_now() - start;
  return SQLITE_OK;
}

int raw_sqlite_run(const char *path, int64_t posts, raw_sqlite_result *result) {
  memset(result, 0, sizeof *result);
  sqlite3 *db = NULL;
  CHECK(sqlite3_open(path, &db));
  CHECK(sqlite3_exec(db, schema, NULL, NULL, NULL));
  CHECK(insert_phase(db, posts, &result->insert));
  CHECK(fetch_phase(db, posts, result));
  CHECK(by_id_phase(db, posts, result));
  CHECK(traverse_phase(db, posts, result));
  CHECK(update_phase(db, posts, result));
  CHECK(erase_phase(db, posts, result));
  sqlite3_close(db);
  return SQLITE_OK;
}

int raw_sqlite_run_batch(const char *path, int64_t posts, raw_sqlite_result *result) {
  sqlite3 *db = NULL;
  sqlite3_stmt *post;
  CHECK(sqlite3_open(path, &db));
  CHECK(sqlite3_exec(db, schema, NULL, NULL, NULL));
  CHECK(sqlite3_prepare_v2(db, "INSERT INTO post VALUES (?,?,?,?,?)", -1, &post, NULL));
  post_data *batch = malloc(sizeof(post_data) * BATCH);
  for (int64_t first = 1; first <= posts; first += BATCH) {
    int64_t last = first + BATCH - 1 < posts ? first + BATCH - 1 : posts;
    for (int64_t i = first; i <= last; i++) make_post(i, &batch[i - first]);
    double start = raw_sqlite_now();
    CHECK(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL));
    for (int64_t i = first; i <= last; i++) {
      post_data *data = &batch[i - first];
      sqlite3_bind_int64(post, 1, i);
      sqlite3_bind_int64(post, 2, data->score);
      sqlite3_bind_double(post, 3, data->timestamp);
      sqlite3_bind_text(post, 4, data->content, 208, SQLITE_STATIC);
      sqlite3_bind_text(post, 5, data->title, (int)strlen(data->title), SQLITE_STATIC);
      CHECK(sqlite3_step(post));
      sqlite3_reset(post);
    }
    CHECK(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL));
    result->batch += raw_sqlite_now() - start;
  }
  free(batch);
  sqlite3_finalize(post);
  sqlite3_close(db);
  return SQLITE_OK;
}
