import apps.stacks.models
import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    # A database that has all of these already is up to date; there is no other way from them.
    replaces = [
        ("stacks", "0002_stacksync_added_by_hand"),
    ]

    dependencies = [
        ('fleet', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='StackReading',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('read_at', models.DateTimeField(null=True)),
                ('counted_until', models.DateTimeField(null=True)),
                ('error', models.CharField(blank=True, max_length=1000)),
                ('failures', models.PositiveIntegerField(default=0)),
                ('next_at', models.DateTimeField(null=True)),
                ('moved_at', models.DateTimeField(null=True)),
                ('claimed_by', models.CharField(blank=True, max_length=80)),
                ('claimed_until', models.DateTimeField(null=True)),
                ('attempt', models.PositiveBigIntegerField(default=0)),
                ('stack', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='reading', to='fleet.stack')),
            ],
        ),
        migrations.CreateModel(
            name='StackRevision',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField()),
                ('generation', models.PositiveBigIntegerField()),
                ('digest', models.CharField(max_length=64)),
                ('document', models.BinaryField()),
                ('secrets', models.BinaryField()),
                ('summary', models.CharField(max_length=400)),
                ('actor', models.CharField(max_length=150)),
                ('refused', models.JSONField(default=list)),
                ('warnings', models.JSONField(default=list)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('stack', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='revisions', to='fleet.stack')),
            ],
            options={
                'ordering': ('-number',),
            },
        ),
        migrations.CreateModel(
            name='StackRun',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('change', 'Change'), ('check', 'Check'), ('destroy', 'Destroy')], default='change', max_length=7)),
                ('state', models.CharField(choices=[('waiting', 'Waiting'), ('planning', 'Planning'), ('planned', 'Planned'), ('approved', 'Approved'), ('applying', 'Applying'), ('done', 'Done'), ('unchanged', 'Unchanged'), ('failed', 'Failed'), ('discarded', 'Discarded'), ('superseded', 'Superseded')], default='waiting', max_length=10)),
                ('actor', models.CharField(max_length=150)),
                ('reason', models.CharField(blank=True, max_length=400)),
                ('approved_by', models.CharField(blank=True, max_length=150)),
                ('approved_at', models.DateTimeField(null=True)),
                ('to_add', models.PositiveIntegerField(default=0)),
                ('to_change', models.PositiveIntegerField(default=0)),
                ('to_replace', models.PositiveIntegerField(default=0)),
                ('to_delete', models.PositiveIntegerField(default=0)),
                ('drifted', models.PositiveIntegerField(default=0)),
                ('plan', models.BinaryField(default=b'')),
                ('plan_file', models.BinaryField(default=b'')),
                ('plan_digest', models.CharField(blank=True, max_length=64)),
                ('password_digest', models.CharField(blank=True, max_length=64)),
                ('cancelled_by', models.CharField(blank=True, max_length=150)),
                ('message', models.CharField(blank=True, max_length=2000)),
                ('object_label', models.CharField(blank=True, max_length=400)),
                ('attempts', models.PositiveIntegerField(default=0)),
                ('next_try_at', models.DateTimeField(null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('planned_at', models.DateTimeField(null=True)),
                ('finished_at', models.DateTimeField(null=True)),
                ('revision', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='runs', to='stacks.stackrevision')),
                ('stack', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='runs', to='fleet.stack')),
            ],
            options={
                'ordering': ('-id',),
            },
        ),
        migrations.CreateModel(
            name='RunEvent',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField()),
                ('kind', models.CharField(max_length=10)),
                ('address', models.CharField(blank=True, max_length=400)),
                ('label', models.CharField(blank=True, max_length=400)),
                ('action', models.CharField(blank=True, max_length=10)),
                ('seconds', models.FloatField(default=0.0)),
                ('message', models.CharField(blank=True, max_length=2000)),
                ('at', models.DateTimeField(auto_now_add=True)),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='events', to='stacks.stackrun')),
            ],
            options={
                'ordering': ('number',),
            },
        ),
        migrations.CreateModel(
            name='StackSync',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('compiled_generation', models.PositiveBigIntegerField(default=0)),
                ('applied_at', models.DateTimeField(null=True)),
                ('unknown', models.JSONField(default=list)),
                ('added_by_hand', models.JSONField(default=list)),
                ('mark', models.CharField(default=apps.stacks.models.new_mark, max_length=16)),
                ('outputs', models.JSONField(default=dict)),
                ('compile_error', models.CharField(blank=True, max_length=2000)),
                ('wait_until', models.DateTimeField(null=True)),
                ('checked_at', models.DateTimeField(null=True)),
                ('claimed_by', models.CharField(blank=True, max_length=80)),
                ('claimed_until', models.DateTimeField(null=True)),
                ('attempt', models.PositiveBigIntegerField(default=0)),
                ('applied', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='stacks.stackrevision')),
                ('doubted', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='stacks.stackrevision')),
                ('stack', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='sync', to='fleet.stack')),
                ('wanted', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='stacks.stackrevision')),
            ],
        ),
        migrations.CreateModel(
            name='StateLock',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('lock_id', models.CharField(max_length=64)),
                ('info', models.JSONField(default=dict)),
                ('held_by', models.CharField(max_length=150)),
                ('seen_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('run', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='stacks.stackrun')),
                ('stack', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='state_lock', to='fleet.stack')),
            ],
        ),
        migrations.CreateModel(
            name='StateVersion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField()),
                ('serial', models.PositiveBigIntegerField(default=0)),
                ('lineage', models.CharField(blank=True, max_length=64)),
                ('md5', models.CharField(max_length=32)),
                ('resources', models.PositiveIntegerField(default=0)),
                ('content', models.BinaryField()),
                ('written_by', models.CharField(max_length=150)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('run', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='states', to='stacks.stackrun')),
                ('stack', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='states', to='fleet.stack')),
            ],
            options={
                'ordering': ('-number',),
            },
        ),
        migrations.CreateModel(
            name='BackendWeight',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('backend_id', models.PositiveBigIntegerField()),
                ('weight', models.PositiveSmallIntegerField(default=0)),
                ('reason', models.CharField(blank=True, max_length=400)),
                ('changed_at', models.DateTimeField()),
                ('stack', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='weights', to='fleet.stack')),
            ],
            options={
                'ordering': ('backend_id',),
                'constraints': [models.UniqueConstraint(fields=('stack', 'backend_id'), name='one_weight_per_backend')],
            },
        ),
        migrations.CreateModel(
            name='CloudSample',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('group', models.CharField(max_length=400)),
                ('object_id', models.CharField(blank=True, max_length=40)),
                ('at', models.DateTimeField()),
                ('requests', models.PositiveBigIntegerField(default=0)),
                ('status_2xx', models.PositiveBigIntegerField(default=0)),
                ('status_3xx', models.PositiveBigIntegerField(default=0)),
                ('status_4xx', models.PositiveBigIntegerField(default=0)),
                ('status_5xx', models.PositiveBigIntegerField(default=0)),
                ('connections', models.PositiveBigIntegerField(default=0)),
                ('p50_ms', models.FloatField(null=True)),
                ('p95_ms', models.FloatField(null=True)),
                ('p99_ms', models.FloatField(null=True)),
                ('stack', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='samples', to='fleet.stack')),
            ],
            options={
                'ordering': ('at',),
                'constraints': [models.UniqueConstraint(fields=('stack', 'group', 'at'), name='one_cloud_sample_per_minute')],
            },
        ),
        migrations.CreateModel(
            name='CloudTarget',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('group', models.CharField(max_length=400)),
                ('object_id', models.CharField(blank=True, max_length=40)),
                ('address', models.CharField(max_length=253)),
                ('port', models.PositiveIntegerField()),
                ('state', models.CharField(max_length=40)),
                ('reason', models.CharField(blank=True, max_length=400)),
                ('since', models.DateTimeField()),
                ('seen_at', models.DateTimeField()),
                ('stack', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='targets', to='fleet.stack')),
            ],
            options={
                'ordering': ('group', 'address', 'port'),
                'constraints': [models.UniqueConstraint(fields=('stack', 'group', 'address', 'port'), name='target_once_in_group')],
            },
        ),
        migrations.AddConstraint(
            model_name='stackrevision',
            constraint=models.UniqueConstraint(fields=('stack', 'number'), name='revision_number_in_stack'),
        ),
        migrations.AddIndex(
            model_name='stackrun',
            index=models.Index(fields=['stack', 'state'], name='stacks_stac_stack_i_87e94d_idx'),
        ),
        migrations.AddConstraint(
            model_name='stackrun',
            constraint=models.UniqueConstraint(condition=models.Q(('finished_at', None)), fields=('stack',), name='one_open_run_per_stack'),
        ),
        migrations.AddConstraint(
            model_name='runevent',
            constraint=models.UniqueConstraint(fields=('run', 'number'), name='event_number_in_run'),
        ),
        migrations.AddConstraint(
            model_name='stateversion',
            constraint=models.UniqueConstraint(fields=('stack', 'number'), name='state_number_in_stack'),
        ),
    ]
