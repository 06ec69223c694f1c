import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    # A database that has all of these already is up to date; there is no other way from them.
    replaces = [
        ("schedules", "0002_message"),
        ("schedules", "0003_schedule_runs"),
    ]

    dependencies = [
        ('accounts', '0001_initial'),
        ('definitions', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='SigningSecret',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('sealed', models.BinaryField()),
                ('previous', models.BinaryField(null=True)),
                ('previous_until', models.DateTimeField(null=True)),
                ('schedule', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='signing_secret', to='definitions.schedule')),
            ],
        ),
        migrations.CreateModel(
            name='Trigger',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=63)),
                ('key_id', models.CharField(max_length=22, unique=True)),
                ('sealed_secret', models.BinaryField()),
                ('previous_secret', models.BinaryField(null=True)),
                ('previous_until', models.DateTimeField(null=True)),
                ('sender', models.CharField(choices=[('secret', 'Secret'), ('standard_webhooks', 'Standard Webhooks'), ('github', 'Github'), ('gitlab', 'Gitlab')], default='secret', max_length=17)),
                ('per_minute', models.PositiveIntegerField(default=60)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('created_by', models.CharField(max_length=150)),
                ('last_used_at', models.DateTimeField(null=True)),
                ('version', models.PositiveIntegerField(default=1)),
                ('account', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to='accounts.account')),
                ('schedule', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='triggers', to='definitions.schedule')),
            ],
            options={
                'ordering': ('name',),
            },
        ),
        migrations.CreateModel(
            name='ScheduleRun',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('scheduled_at', models.DateTimeField()),
                ('due_at', models.DateTimeField()),
                ('cause', models.CharField(choices=[('time', 'Time'), ('catch_up', 'Catch Up'), ('by_hand', 'By Hand'), ('trigger', 'Trigger'), ('restore', 'Restore')], default='time', max_length=8)),
                ('state', models.CharField(choices=[('waiting', 'Waiting'), ('running', 'Running'), ('done', 'Done'), ('dead', 'Dead'), ('skipped', 'Skipped'), ('missed', 'Missed')], default='waiting', max_length=7)),
                ('attempt', models.PositiveIntegerField(default=0)),
                ('next_try_at', models.DateTimeField()),
                ('lease_until', models.DateTimeField(null=True)),
                ('started_at', models.DateTimeField(null=True)),
                ('finished_at', models.DateTimeField(null=True)),
                ('actor', models.CharField(blank=True, default='', max_length=150)),
                ('delivery', models.CharField(blank=True, default='', max_length=100)),
                ('body', models.TextField(blank=True, default='')),
                ('message', models.CharField(blank=True, default='', max_length=400)),
                ('result', models.JSONField(default=dict)),
                ('account', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to='accounts.account')),
                ('schedule', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='runs', to='definitions.schedule')),
                ('trigger', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='runs', to='schedules.trigger')),
            ],
            options={
                'ordering': ('-scheduled_at', '-id'),
            },
        ),
        migrations.AddConstraint(
            model_name='trigger',
            constraint=models.UniqueConstraint(fields=('schedule', 'name'), name='trigger_name_in_schedule'),
        ),
        migrations.AddIndex(
            model_name='schedulerun',
            index=models.Index(condition=models.Q(('state', 'waiting')), fields=['next_try_at'], name='schedule_runs_waiting'),
        ),
        migrations.AddIndex(
            model_name='schedulerun',
            index=models.Index(condition=models.Q(('state__in', ('waiting', 'running'))), fields=['schedule', 'id'], name='schedule_runs_open'),
        ),
        migrations.AddIndex(
            model_name='schedulerun',
            index=models.Index(condition=models.Q(('state', 'running')), fields=['lease_until'], name='schedule_runs_running'),
        ),
        migrations.AddIndex(
            model_name='schedulerun',
            index=models.Index(fields=['schedule', '-scheduled_at'], name='schedules_s_schedul_b01853_idx'),
        ),
        migrations.AddIndex(
            model_name='schedulerun',
            index=models.Index(condition=models.Q(('trigger__isnull', False)), fields=['trigger', '-scheduled_at'], name='schedule_runs_of_trigger'),
        ),
        migrations.AddIndex(
            model_name='schedulerun',
            index=models.Index(condition=models.Q(('state__in', ('dead', 'missed'))), fields=['schedule', 'scheduled_at'], name='schedule_runs_bad'),
        ),
        migrations.AddConstraint(
            model_name='schedulerun',
            constraint=models.UniqueConstraint(fields=('schedule', 'scheduled_at'), name='one_schedule_run_per_instant'),
        ),
        migrations.AddConstraint(
            model_name='schedulerun',
            constraint=models.UniqueConstraint(condition=models.Q(('delivery', ''), _negated=True), fields=('trigger', 'delivery'), name='one_schedule_run_per_delivery'),
        ),
    ]
